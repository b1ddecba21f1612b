/* SPDX-License-Identifier: MIT */
/*
 * Measures the cost of a hooked call: loops call a function that only returns, directly and through
 * the probes.  The minimum of some rounds is the cost while code and data are in the processor's
 * caches; in a program a call may cost more.  It is one constant for the whole run, because in a
 * running program the time of a call cannot be separated from the cost of its hook
 * (docs/lab/timing.md).
 */
#include "counters/timing/hook_cost.h"

#include "counters/rows.h"
#include "counters/thread_row.h"
#include "counters/timing/places.h"
#include "live/clock.h"

HFN_SYSTEM_V void hfn_count_probe(uint64_t **row, uint64_t calls, uint64_t counted);

enum { CALLS = 250, ROUNDS = 80 };
#define COST_UNIT 256.0

typedef struct probe_row {
    uint8_t *row;
    hfn_time_node *nodes; /* a root and one place below it, which no reader sees */
    uint64_t bytes;
} probe_row;

typedef struct round_result {
    double all;    /* ticks of a call and of the loop around it */
    double inside; /* ticks in the called place                 */
} round_result;

static uint32_t in_units(double ticks)
{
    return ticks > 0 ? (uint32_t)(ticks * COST_UNIT) : 0;
}

static double min_of(double a, double b)
{
    return a < b ? a : b;
}

static uint64_t timed_ticks(const probe_row *p)
{
    hfn_time_state *t = hfn_time_state_of(p->row);

    return hfn_time.flags & HOTFN_TIMING_SAMPLED ? hfn_time_cell_of(t, 0)->total_ticks
                                                 : p->nodes[1].total_ticks;
}

static round_result measure_round(const probe_row *p, void (*enter)(void), void (*exit)(void))
{
    uint64_t begin = hfn_clock_read(hfn_time.clock), before = timed_ticks(p);

    hfn_time_probe(0, enter, exit, CALLS);
    return (round_result){
        .all = (double)(hfn_clock_read(hfn_time.clock) - begin) / CALLS,
        .inside = (double)(timed_ticks(p) - before) / CALLS,
    };
}

static round_result measure_rounds(const probe_row *p, void (*enter)(void), void (*exit)(void))
{
    round_result best = measure_round(p, enter, exit);

    for (int i = 1; i < ROUNDS; i++) {
        round_result one = measure_round(p, enter, exit);
        best.all = min_of(best.all, one.all);
        best.inside = min_of(best.inside, one.inside);
    }
    return best;
}

static double measure_counted_call(void)
{
    uint64_t counter = 0, *row = &counter;
    double best[2] = { 1e9, 1e9 };

    for (uint32_t i = 0; i < 2 * ROUNDS; i++) {
        uint64_t begin = hfn_clock_read(hfn_time.clock);
        double each;

        hfn_count_probe(&row, CALLS, i & 1);
        each = (double)(hfn_clock_read(hfn_time.clock) - begin) / CALLS;
        best[i & 1] = min_of(best[i & 1], each);
    }
    return best[1] > best[0] ? best[1] - best[0] : 0;
}

/* Prepare a row with the place of the measured calls, so that they take none from the shared pool
 * of places. */
static bool make_row(probe_row *p, uint64_t row_bytes)
{
    hfn_time_state *t;

    p->bytes = row_bytes + 2 * sizeof(hfn_time_node);
    p->row = hfn_rows_map(p->bytes);
    if (!p->row) {
        return false;
    }
    p->nodes = (hfn_time_node *)(void *)(p->row + row_bytes);
    p->nodes[0] = (hfn_time_node){ .parent = 0, .slot = UINT32_MAX };
    p->nodes[1] = (hfn_time_node){ .parent = 0, .slot = 0 };
    t = hfn_time_state_of(p->row);
    t->root = t->node = t->thread = 1;
    *hfn_tree_hint(t, 1, 0) = 1;
    return true;
}

static void measure_timed_call(const hfn_timing_calls *calls, uint64_t row_bytes)
{
    hfn_time_header *h = hfn_time.header;
    hfn_time_engine before = hfn_time;
    uint8_t *row = hfn_thread_row;
    round_result timed, bare;
    probe_row p;

    if (!make_row(&p, row_bytes)) {
        return;
    }
    hfn_time.nodes = p.nodes;
    hfn_time.slow_ticks = UINT64_MAX;
    hfn_time.events = NULL;
    hfn_time.allocs = NULL;
    hfn_time.cpu_rate = 0;
    hfn_time.flags &= hfn_time.tick ? ~HOTFN_TIMING_HISTOGRAMS : ~0u;
    hfn_thread_row = p.row;
    timed = measure_rounds(&p, calls->enter, calls->exit);
    bare = measure_rounds(&p, NULL, NULL);
    hfn_thread_row = row;
    hfn_time = before;
    hfn_rows_unmap(p.row, p.bytes);
    timed.inside = hfn_time.tick && !(h->flags & HOTFN_TIMING_SAMPLED) ? 0 : timed.inside;
    h->cost_inside_ticks = in_units(min_of(timed.inside, timed.all));
    h->cost_outside_ticks = in_units(timed.all - bare.all - timed.inside);
}

void hfn_hook_cost_measure(const hfn_timing_calls *calls, uint64_t row_bytes)
{
    hfn_time_header *h = hfn_time.header;

    h->count_cost_ticks = in_units(measure_counted_call());
    measure_timed_call(calls, row_bytes);
}
