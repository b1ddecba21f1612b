/* SPDX-License-Identifier: MIT */
/* HOT PATH: the rare cases of times by places. */
#include "counters/timing/places.h"

#include "counters/timing/tick_mode.h"
#include "counters/timing/waiting.h"

HFN_KEEPS_REGISTERS uint32_t hfn_place_in_tree(hfn_time_state *t, uint32_t node)
{
    uint32_t root;

    if (node == 0 || hfn_place_at(node)->thread == t->thread - 1) {
        return node;
    }
    if (t->thread == 0) {
        return 0;
    }
    root = t->root ? t->root : hfn_tree_root(HFN_PASS(t));
    if (root == 0 || hfn_place_at(node)->slot == UINT32_MAX) {
        return root;
    }
    return hfn_tree_child(HFN_PASS(t), HFN_PASS(root), HFN_PASS(hfn_place_at(node)->slot));
}

HFN_KEEPS_REGISTERS void hfn_place_add_length(hfn_time_state *t, uint64_t call_word, uint64_t ticks)
{
    hfn_time_cell *c = hfn_time_cell_of(t, hfn_call_slot(call_word));
    uint64_t index;

    if ((int64_t)ticks < 0) {
        ticks = 0;
    }
    if (ticks > c->max_ticks) {
        c->max_ticks = ticks;
    }
    if ((hfn_time.flags & HOTFN_TIMING_HISTOGRAMS) &&
        hfn_tree_find_bucket(HFN_PASS(c), HFN_PASS(ticks), HFN_PASS(&index))) {
        hfn_time.histograms[index]++;
    }
    if (HFN_UNLIKELY(ticks >= hfn_time.slow_ticks)) {
        hfn_tree_keep_slow(HFN_PASS(t), HFN_PASS(hfn_call_slot(call_word)),
                           HFN_PASS(hfn_call_node(call_word)),
                           HFN_PASS(hfn_load_tick(&t->last_tick) - ticks), HFN_PASS(ticks));
    }
}

void hfn_place_charge_until(hfn_time_state *t, uint64_t now)
{
    uint64_t before = hfn_own_time(t), last = hfn_load_tick(&t->last_tick);

    if ((int64_t)(now - last) <= 0 || !hfn_replace_tick(&t->last_tick, last, now) ||
        t->depth == 0) {
        return;
    }
    hfn_tick_start_calls(t, before);
    if (t->node != 0) {
        hfn_add_tick(&hfn_place_at(t->node)->total_ticks, now - last);
    }
    hfn_waiting_note(t, t->node, now - last);
}

void hfn_place_end_call(hfn_time_state *t, uint32_t index)
{
    const hfn_open_call *call = &hfn_open_calls_of(t)[index];

    if (index < t->started) {
        hfn_place_add_length(t, call->call_word, hfn_own_time(t) - call->start);
    }
}
