/* SPDX-License-Identifier: MIT */
/* Bounds of a sample.  One call that was interrupted stands for as many as were passed over, and its function may
 * come out longer than the run.  What is known without chance: no thread's calls of a function take longer
 * than the thread was there, and those that a caller made no longer than the caller's own calls, if each of them was
 * timed.  An estimate above that by chance is cut down to it; its relative error stays.
 *
 * Only by chance: one that is above by more than its error allows is left as it is, for then what was taken as known is not.
 * A coroutine's calls go on while others of the thread run, and a caller may have been at work before its hook was there. */
#include "profile/profile.h"

#define BY_CHANCE 3 /* standard errors */
#define UNKNOWN UINT64_MAX

static uint64_t life_of(const hfn_times *t, uint32_t thread)
{
    uint64_t first = t->threads[thread].first_tick, last = t->threads[thread].last_tick;

    return first == 0 || last < first ? UNKNOWN : last - first;
}

/* Of the threads that timed a call of the slot. */
static uint64_t lives_of(const hotfn_record *r, const hfn_slot_sum *sum)
{
    uint64_t all = sum->entry_count > 0 ? 0 : UNKNOWN;

    for (uint32_t i = 0; i < sum->entry_count && all != UNKNOWN; i++) {
        const hfn_time_entry *e = &r->times.entries[r->sums->entry_order[sum->first_entry + i]];
        uint64_t life = life_of(&r->times, e->thread);

        all = life > UNKNOWN - all ? UNKNOWN : all + life;
    }
    return all;
}

/* The longest that calls from the caller may have taken. */
static uint64_t most_within(const hotfn_record *r, uint32_t caller, uint64_t life)
{
    const hfn_slot_sum *sum = caller < r->sums->slot_count ? &r->sums->slots[caller] : NULL;
    uint64_t all;

    if (!sum || !hfn_times_is_known(r, sum)) {
        return life;
    }
    all = hfn_times_less_hooks(r, sum->total_ticks, sum->within_timed, sum->outermost_timed);
    return all < life ? all : life;
}

/* What to multiply an estimate with. */
static double cut(uint64_t ticks, double error, uint64_t most)
{
    return ticks > most && (double)ticks - BY_CHANCE * error <= (double)most
               ? (double)most / (double)ticks
               : 1;
}

static void bound_node(hotfn_record *r, uint32_t node)
{
    const hfn_time_node *n = &r->times.nodes[node];
    hfn_node_sum *sum = &r->sums->nodes[node];
    uint64_t ticks = (uint64_t)hfn_times_node_raw(r, node);
    double error = hfn_times_root((double)n->spread * r->sums->slots[n->slot].variance);
    uint32_t caller = n->parent == UINT32_MAX ? HOTFN_NO_SLOT : r->times.nodes[n->parent].slot;

    if (caller < r->sums->slot_count &&
        r->sums->slots[caller].cycle == r->sums->slots[n->slot].cycle) {
        return; /* its calls may be in each other */
    }
    sum->cut = cut(ticks, error, most_within(r, caller, life_of(&r->times, n->thread)));
    if (sum->edge != UINT32_MAX) {
        r->sums->edges[sum->edge].cut_ticks += (double)ticks * (1 - sum->cut);
    }
}

/* All its nodes, those that recurse too: no total is more. */
static uint64_t most_estimated(const hotfn_record *r, const hfn_slot_sum *sum)
{
    uint64_t ticks = 0;

    for (uint32_t i = sum->first_node; i != UINT32_MAX; i = r->sums->nodes[i].next_of_slot) {
        if (r->sums->nodes[i].is_chosen) {
            ticks += hfn_times_node_ticks(r, i);
        }
    }
    return ticks;
}

void hfn_times_bound_sample(hotfn_record *r)
{
    hfn_time_sums *s = r->sums;

    for (uint32_t i = 0; i < s->node_count; i++) {
        if (s->nodes[i].is_chosen && r->times.nodes[i].spread > 0) {
            bound_node(r, i);
        }
    }
    for (uint32_t i = 0; i < s->slot_count; i++) {
        hfn_slot_sum *sum = &s->slots[i];
        uint64_t life = sum->spread > 0 ? lives_of(r, sum) : UNKNOWN;

        if (life != UNKNOWN && most_estimated(r, sum) > life) {
            sum->cut = cut(hfn_times_sampled_ticks(r, sum), hfn_times_sample_error(r, sum), life);
        }
    }
}
