/* SPDX-License-Identifier: MIT */
/* A live record with functions "f0" ... and threads that write events to their rings, in the steps
 * of counters/timing/call_tree.h. */
#ifndef HFN_TESTS_EVENTS_LIVE_EVENTS_H
#define HFN_TESTS_EVENTS_LIVE_EVENTS_H

#include "check.h"
#include "live/live.h"

#include <hotfn/lowlevel/timing.h>

enum { LIVE_FUNCTIONS = 8, LIVE_RING = 64 };

static inline hfn_live *make_live_events(void)
{
    static char names[LIVE_FUNCTIONS][8];
    hfn_live_options o = { .command = "./game",
                           .slot_capacity = 16,
                           .thread_capacity = 4,
                           .string_bytes = 8192,
                           .timing = HOTFN_TIMING_TIMES | HOTFN_TIMING_TREE | HOTFN_TIMING_EVENTS,
                           .node_capacity = 16,
                           .histogram_capacity = 1,
                           .event_capacity = LIVE_RING };
    hotfn_record_module m = HOTFN_RECORD_MODULE_INIT;
    hotfn_record_function f[LIVE_FUNCTIONS];
    hfn_live *live = NULL;
    uint32_t index;

    for (uint32_t i = 0; i < LIVE_FUNCTIONS; i++) {
        snprintf(names[i], sizeof names[i], "f%u", i);
        f[i] = (hotfn_record_function)HOTFN_RECORD_FUNCTION_INIT;
        f[i].name = names[i];
        f[i].names = f[i].strategy = f[i].reason = f[i].reason_text = "";
        f[i].name_count = 1;
        f[i].rva = 16 * i;
        f[i].byte_count = 16;
        f[i].state = HOTFN_STATE_HOOKED;
    }
    m.function_count = LIVE_FUNCTIONS;
    m.path = "/opt/game";
    m.flags = HOTFN_MODULE_MAIN;
    if (hfn_live_create(&live, &o, NULL, NULL) != HOTFN_OK ||
        hfn_live_add_module(live, &m, f, &index, NULL) != HOTFN_OK) {
        exit(1);
    }
    return live;
}

static inline hfn_time_state *live_state(hfn_live *live, uint32_t row)
{
    const hfn_section *s = live->layout.sections;

    return (void *)(live->rows + (uint64_t)row * live->layout.row_bytes +
                    (s[HFN_SECTION_TIME_ROWS].offset - s[HFN_SECTION_ROWS].offset));
}

static inline void own_row(hfn_live *live, uint32_t row, uint32_t thread)
{
    hfn_row_memory memory = hfn_live_activate_rows(live);

    memory.cells[row].tid = thread;
    if (memory.header->cells_used <= row) {
        memory.header->cells_used = row + 1;
    }
}

/* The entry of the next event, as the thread writes it. */
static inline hfn_time_event *begin_event(hfn_live *live, uint32_t row)
{
    hfn_time_state *state = live_state(live, row);
    hfn_time_event *ring =
        (void *)(hfn_live_section(live, HFN_SECTION_EVENTS) + row * LIVE_RING * sizeof *ring);

    return &ring[state->events++ % LIVE_RING];
}

static inline void write_event(hfn_live *live, uint32_t row, uint32_t kind, uint32_t slot,
                               uint64_t ticks)
{
    *begin_event(live, row) = (hfn_time_event){ ticks, slot, kind };
}

#endif
