/* SPDX-License-Identifier: MIT */
/*
 * HOT PATH: time by places of the call tree, for tick_mode.c and counter_mode.c.  The time between
 * two events of a thread belongs to the place that is current meanwhile, without the cost of
 * hooks.  So the tree has all times, whatever stacks a thread runs on; a reader sums it up
 * (records/tree_times.c).
 *
 * A thread has its own time: its clock without the ticks of hooks.  The length of a call is the own
 * time that passes in it.
 */
#ifndef HFN_COUNTERS_PLACES_H
#define HFN_COUNTERS_PLACES_H

#include "counters/timing/call_tree.h"
#include "counters/timing/open_calls.h"

static HFN_ALWAYS_INLINE uint64_t hfn_own_time(const hfn_time_state *t)
{
    return hfn_load_tick(&t->last_tick) - t->hook_ticks;
}

static HFN_ALWAYS_INLINE hfn_time_node *hfn_place_at(uint32_t node)
{
    return &hfn_time.nodes[node - 1];
}

/* 0 if there is no caller's place. */
static inline uint32_t hfn_place_of_caller(uint32_t node)
{
    return node == 0 ? 0 : hfn_place_at(node)->parent + 1;
}

/* Find or make the callee's place below the current one, count the call there, and fill the frame.
 * 0, and an untimed frame: there is no room. */
static HFN_ALWAYS_INLINE uint32_t hfn_place_enter(hfn_time_state *t, hfn_time_frame *f,
                                                  uint32_t depth)
{
    uint32_t parent = t->node, slot = (uint32_t)f->slot & HFN_CALL_SLOT, child = 0;

    if (HFN_UNLIKELY(parent == 0) && t->thread != 0) {
        parent = hfn_tree_root(HFN_PASS(t));
    }
    if (HFN_LIKELY(parent != 0)) {
        child = hfn_tree_child(HFN_PASS(t), HFN_PASS(parent), HFN_PASS(slot));
    }
    if (HFN_UNLIKELY(child == 0)) {
        f->call_word = HFN_CALL_UNTIMED;
        return 0;
    }
    hfn_place_at(child)->calls++;
    f->caller = parent;
    f->depth = depth;
    f->call_word = slot | hfn_time.session | (uint64_t)child << HFN_CALL_NODE_SHIFT;
    return child;
}

/* The place in this thread's tree for a node of another thread (a coroutine moved) or of the parent
 * process. */
HFN_KEEPS_REGISTERS uint32_t hfn_place_in_tree(hfn_time_state *t, uint32_t node);
/* A call of this length has ended: longest call, histogram, slow calls. */
HFN_KEEPS_REGISTERS void hfn_place_add_length(hfn_time_state *t, uint64_t call_word,
                                              uint64_t ticks);
/* The time until `now` belongs to the current place, if a call is open. */
void hfn_place_charge_until(hfn_time_state *t, uint64_t now);
/* The open call with this index ends now, if it has a start. */
void hfn_place_end_call(hfn_time_state *t, uint32_t index);

#endif
