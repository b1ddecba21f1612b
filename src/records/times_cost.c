/* SPDX-License-Identifier: MIT */
/* What a timed call costs, by what the run itself tells of it, in the place of what was found at its start
 * (docs/lab/timing-cost.md). */
#include "records/times.h"

#define COST_UNIT 256.0

static uint32_t in_units(double ticks)
{
    double units = ticks > 0 ? ticks * COST_UNIT : 0;

    return units < UINT32_MAX ? (uint32_t)units : UINT32_MAX;
}

/* Of a flat run: what threads found that a call costs as they ran. */
static void take_probed_cost(hfn_time_header *h)
{
    double calls = (double)h->probed_calls;
    double all = (double)h->probed_ticks / calls - h->probe_ticks / COST_UNIT;
    double inside = (double)h->probed_inside_ticks / calls;

    h->cost_inside_ticks = in_units(inside);
    h->cost_outside_ticks = in_units(all - inside);
}

/* ---- Of a run with a tree: what ends saw of themselves. */

typedef struct call_cost {
    double inside, outside;
} call_cost;

static double cost_of(const hfn_time_cell *c, call_cost cost)
{
    return (double)c->timed_calls * cost.inside + (double)c->callee_timed * cost.outside;
}

/* If a call costs that, is no more than a tenth of what is left of functions' own times below nothing?  None counts for
 * more than its hooks take at the most: one that waits says nothing of them. */
static bool is_possible(const hfn_times *t, call_cost cost, call_cost most)
{
    enum { BELOW = 10 };
    double above = 0, below = 0;

    for (size_t i = 0; i < t->entry_count; i++) {
        const hfn_time_cell *c = &t->entries[i].cell;
        double self = (double)c->self_ticks - cost_of(c, cost), counts = cost_of(c, most);

        if (self < 0) {
            below -= self;
        } else {
            above += self < counts ? self : counts;
        }
    }
    return below * BELOW <= above;
}

/* Nobody works less than nothing: so the program's own figures say what a call costs at most. */
static double most_possible(const hfn_times *t, call_cost most)
{
    enum { STEPS = 24 };
    double low = 0, high = most.outside;

    if (is_possible(t, most, most)) {
        return most.outside;
    }
    for (int i = 0; i < STEPS; i++) {
        double middle = (low + high) / 2;

        *(is_possible(t, (call_cost){ most.inside, middle }, most) ? &low : &high) = middle;
    }
    return low;
}

/* A look sees all of an end but the way there and back, and its own reading and a mistaken branch besides; the start says
 * by how much the one is more than the other.  In a run half of that is there. */
static void take_seen_cost(hfn_times *t)
{
    hfn_time_header *h = &t->header;
    double seen = 2 * (double)h->seen_ticks / (double)h->seen_ends;
    call_cost cost = { h->cost_inside_ticks / COST_UNIT, 0 };

    cost.outside = seen + (double)h->unseen_ticks / COST_UNIT / 2 - cost.inside;
    h->cost_outside_ticks = in_units(cost.outside > 0 ? most_possible(t, cost) : 0);
}

void hfn_times_find_cost(hfn_times *t)
{
    if (t->header.probed_calls > 0) {
        take_probed_cost(&t->header);
    } else if (t->header.seen_ends >= HFN_ENDS_TO_BELIEVE) {
        take_seen_cost(t);
    }
}
