/* SPDX-License-Identifier: MIT */
/* The access of timed calls to the shared pools: places (nodes) of the call tree, histograms, and
 * the rings of slow calls and of events. */
#ifndef HFN_COUNTERS_CALL_TREE_H
#define HFN_COUNTERS_CALL_TREE_H

#include "counters/timing/engine.h"

/* The root of the thread's tree, created if there is none; 0: the pool is full. */
HFN_KEEPS_REGISTERS uint32_t hfn_tree_root(hfn_time_state *t);
/* The place of `slot` below `parent`, created if there is none.  If the tree is too deep or the
 * pool is full, the place is one below the root, so that functions have all of their times; 0:
 * there is no room for that either. */
HFN_KEEPS_REGISTERS uint32_t hfn_tree_find_child(hfn_time_state *t, uint32_t parent, uint32_t slot);
/* Find the index in the pool of histograms at which a call of this duration is counted.  False: the
 * function has no histogram. */
HFN_KEEPS_REGISTERS bool hfn_tree_find_bucket(hfn_time_cell *cell, uint64_t ticks, uint64_t *index);
HFN_KEEPS_REGISTERS void hfn_tree_keep_slow(const hfn_time_state *t, uint32_t slot, uint32_t node,
                                            uint64_t start, uint64_t ticks);

/* The entry of the row's cache of nodes for this pair.  It has the index of the node that was found
 * last for a pair with the same hash, so the node is compared with both before it is used. */
static inline uint32_t *hfn_tree_hint(hfn_time_state *t, uint32_t parent, uint32_t slot)
{
    uint32_t *hints = (uint32_t *)(void *)((uint8_t *)t + hfn_time.hints_at);

    return &hints[(parent * HFN_HINT_PARENT_FACTOR + slot * HFN_HINT_SLOT_FACTOR) >>
                  (32 - HFN_HINT_BITS)];
}

static HFN_ALWAYS_INLINE uint32_t hfn_tree_child(hfn_time_state *t, uint32_t parent, uint32_t slot)
{
    uint32_t child = *hfn_tree_hint(t, parent, slot) + 1;
    const hfn_time_node *n = &hfn_time.nodes[child - 1];

    if (HFN_LIKELY(n->slot == slot && n->parent + 1 == parent)) {
        return child;
    }
    return hfn_tree_find_child(HFN_PASS(t), HFN_PASS(parent), HFN_PASS(slot));
}

/* Append the thread's latest entry (kind 1) or exit (kind 2) to its ring of events. */
static HFN_ALWAYS_INLINE void hfn_time_put_event(hfn_time_state *t, uint32_t slot, uint32_t kind)
{
    hfn_time_event *e;

    if (HFN_LIKELY(!hfn_time.events) || t->thread == 0) {
        return;
    }
    e = hfn_time.events + (uint64_t)(t->thread - 1) * (hfn_time.event_mask + UINT64_C(1)) +
        (t->events++ & hfn_time.event_mask);
    e->kind = 0;
    HFN_SIGNAL_BARRIER();
    e->ticks = t->last_tick;
    e->slot = slot;
    HFN_SIGNAL_BARRIER();
    e->kind = kind;
}

#endif
