/* SPDX-License-Identifier: MIT */
/* HOT PATH: what a timed call costs now.  Another program on the same processor core makes it cost half as much again,
 * for parts of a second; a call's place in a large tree is far away in memory.  So it is measured now and then where the
 * program's own calls run, and a record goes by the mean.
 *
 * With a tree some ends of calls look at the clock once more.  Of a flat run's calls, which wait for little but the clock,
 * that would tell too little: there a thread makes some calls of the engine's own.
 * The calls of a measurement are calls like all others, of a function of our own: what a signal handler calls meanwhile
 * is counted as ever, and who was interrupted has them taken out of its time as it has its callees.  A
 * tree, which tells what was called within a call, would know nothing of them. */
#include "counters/timing/call_stack.h"

#include "counters/thread_row.h"

typedef struct probe {
    int64_t all, inside; /* ticks */
} probe;

static probe try_calls(hfn_time_state *t, uint32_t slot, uint64_t calls)
{
    const hfn_time_cell *c = hfn_time_cell_of(t, slot + 1);
    uint64_t begin = hfn_time_now(), total = c->total_ticks;

    hfn_time_probe(slot, hfn_time_enter_entry, hfn_time_exit_entry, calls);
    return (probe){ (int64_t)(hfn_time_now() - begin), (int64_t)(c->total_ticks - total) };
}

/* What more calls take more: none of what passes until one call goes as the other does. */
static probe try_more_calls(hfn_time_state *t, uint32_t slot)
{
    probe few = try_calls(t, slot, HFN_PROBE_FEW);
    probe more = try_calls(t, slot, HFN_PROBE_FEW + HFN_PROBE_CALLS);

    return (probe){ more.all - few.all, more.inside - few.inside };
}

/* The first finds its code cold, and one may be interrupted. */
static probe middle_of(const probe *p)
{
    const probe *low = p[0].all < p[1].all ? &p[0] : &p[1], *high = low == p ? &p[1] : &p[0];

    return p[2].all < low->all ? *low : p[2].all < high->all ? p[2] : *high;
}

/* Only where a call of it goes the usual way. */
static bool can_measure(const hfn_time_state *t, uint64_t slot)
{
    return hfn_time.clock != HFN_CLOCK_STOPPED && t->thread != 0 && t->suspended_count == 0 &&
           t->depth + 1 < HFN_LOG_CAPACITY && slot < HFN_CALL_SLOT;
}

HFN_KEEPS_REGISTERS void hfn_time_learn_cost(void)
{
    uint8_t *row = hfn_thread_row;
    hfn_time_header *h = hfn_time.header;
    uint64_t slot = hfn_time_own_slot(hfn_time.hints_at);
    probe tried[3], middle;

    if (!row || !h || !can_measure(hfn_time_state_of(row), slot)) {
        return;
    }
    for (int i = 0; i < 3; i++) {
        tried[i] = try_more_calls(hfn_time_state_of(row), (uint32_t)slot);
        if (hfn_thread_row != row || hfn_time.header != h) {
            return; /* the counters were given up */
        }
    }
    middle = middle_of(tried);
    if (middle.inside < 0 || middle.all < middle.inside) {
        return;
    }
    __atomic_fetch_add(&h->probed_ticks, (uint64_t)middle.all, __ATOMIC_RELAXED);
    __atomic_fetch_add(&h->probed_inside_ticks, (uint64_t)middle.inside, __ATOMIC_RELAXED);
    __atomic_fetch_add(&h->probed_calls, HFN_PROBE_CALLS, __ATOMIC_RELAXED);
}

HFN_KEEPS_REGISTERS void hfn_time_end_took(uint64_t ticks)
{
    hfn_time_header *h = hfn_time.header;

    if (!hfn_time_is_on() || ticks >= HFN_END_TICKS_MOST) {
        return;
    }
    __atomic_fetch_add(&h->seen_ticks, ticks, __ATOMIC_RELAXED);
    __atomic_fetch_add(&h->seen_ends, 1, __ATOMIC_RELAXED);
}
