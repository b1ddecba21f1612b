/* SPDX-License-Identifier: MIT */
/* A thread's row with times, and the pools behind it, in plain memory, so that a test reads what
 * the timing engine writes without a record. */
#ifndef HFN_TESTS_TIMED_ROW_H
#define HFN_TESTS_TIMED_ROW_H

#include "counters/thread_row.h"
#include "counters/timing/engine.h"
#include "counters/timing/timing.h"

#include "check.h"

#include <string.h>

enum {
    TIMED_SLOTS = 16,
    TIMED_NODES = 4096,
    TIMED_HISTOGRAMS = 32,
    TIMED_SLOW = 64,
    TIMED_EVENTS = 256
};
enum { TIMED_COUNTS_BYTES = 4096, TIMED_THREADS = 8 };

typedef struct timed_row {
    _Alignas(64) uint8_t counts[TIMED_COUNTS_BYTES];
    uint8_t times[1 << 18]; /* most of it is the log and the hints */
} timed_row;

typedef struct timed_memory {
    hfn_time_header header;
    hfn_time_node nodes[TIMED_NODES];
    hotfn_alloc_cell allocs[TIMED_NODES];
    uint64_t histograms[TIMED_HISTOGRAMS][HOTFN_HISTOGRAM_BUCKETS];
    hfn_slow_call slow[TIMED_SLOW];
    hfn_time_event events[TIMED_THREADS][TIMED_EVENTS];
    timed_row rows[TIMED_THREADS];
} timed_memory;

static timed_memory timed;

/* With HOTFN_TIMING_*, in the pools' full size; a test may make them smaller before.  tick: the
 * word of a tick clock, or NULL. */
static inline void timed_start_by(uint32_t flags, const uint64_t *tick)
{
    hfn_time_memory m = { .header = &timed.header,
                          .thread_at = TIMED_COUNTS_BYTES,
                          .log_at = (uint32_t)hfn_time_log_at(TIMED_SLOTS),
                          .skips_at = (uint32_t)hfn_time_skips_at(TIMED_SLOTS),
                          .gaps_at = (uint32_t)hfn_time_gaps_at(TIMED_SLOTS),
                          .hints_at = (uint32_t)hfn_time_hints_at(TIMED_SLOTS),
                          .nodes = timed.nodes,
                          .allocs = timed.allocs,
                          .histograms = timed.histograms[0],
                          .slow = timed.slow,
                          .events = timed.events[0],
                          .tick = tick };
    hfn_time_header *h = &timed.header;

    h->flags = HOTFN_TIMING_TIMES | flags;
    h->clock = HOTFN_CLOCK_TSC;
    h->count_cost_ticks = 1; /* known: not to be measured */
    h->node_capacity = h->node_capacity ? h->node_capacity : TIMED_NODES;
    h->histogram_capacity = h->histogram_capacity ? h->histogram_capacity : TIMED_HISTOGRAMS;
    h->slow_capacity = h->slow_capacity ? h->slow_capacity : TIMED_SLOW;
    h->event_capacity = TIMED_EVENTS;
    CHECK(sizeof timed.rows[0].times >= hfn_time_row_bytes(TIMED_SLOTS));
    h->tick_ticks = tick ? 4 : 0;
    hfn_timing_start(&m);
}

static inline void timed_start(uint32_t flags)
{
    timed_start_by(flags, NULL);
}

/* The calling thread's row from now on. */
static inline hfn_time_state *timed_use(uint32_t thread)
{
    hfn_thread_row = timed.rows[thread].counts;
    hfn_time_begin_row(hfn_thread_row, thread + 1);
    return hfn_time_state_of(hfn_thread_row);
}

static inline void timed_forget(void)
{
    hfn_thread_row = NULL;
    hfn_timing_stop();
    memset(&timed, 0, sizeof timed);
}

static inline const hfn_time_cell *timed_cell(hfn_time_state *t, uint32_t slot)
{
    return hfn_time_cell_of(t, slot);
}

static inline bool timed_is_place(uint32_t index, uint32_t slot)
{
    return (timed.nodes[index].flags & HFN_NODE_USED) && timed.nodes[index].slot == slot;
}

/* The calls of a function, and its own time, in all places. */
static inline uint64_t timed_calls_of(uint32_t slot)
{
    uint64_t calls = 0;

    for (uint32_t i = 0; i < TIMED_NODES; i++) {
        calls += timed_is_place(i, slot) ? timed.nodes[i].calls : 0;
    }
    return calls;
}

static inline uint64_t timed_ticks_of(uint32_t slot)
{
    uint64_t ticks = 0;

    for (uint32_t i = 0; i < TIMED_NODES; i++) {
        ticks += timed_is_place(i, slot) ? timed.nodes[i].total_ticks : 0;
    }
    return ticks;
}

/* Check that the times of a thread's places and of its hooks sum up to the time that passed. */
static inline bool timed_is_complete(const hfn_time_state *t)
{
    uint64_t ticks = t->hook_ticks;

    for (uint32_t i = 0; i < TIMED_NODES; i++) {
        ticks += timed.nodes[i].thread + 1 == t->thread ? timed.nodes[i].total_ticks : 0;
    }
    return CHECK_EQ_U64(ticks, t->last_tick - t->first_tick);
}

#endif
