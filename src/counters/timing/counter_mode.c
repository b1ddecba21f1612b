/* SPDX-License-Identifier: MIT */
/*
 * HOT PATH: the entry and exit probes of a call that is timed by the processor's counter.  General
 * registers only, no libc, no lock.
 *
 * Each probe reads the counter once, and charges the time since the thread's latest event to the
 * current place.  That time includes the cost of the hooks, so a constant that is measured at the
 * start (hook_cost.c) is subtracted: the entry probe subtracts `enter_cost` from the caller's time,
 * the exit probe `exit_cost` from the function's.  A place may therefore have a negative time; the
 * reader moves the deficit to its caller (records/tree_times.c).
 */
#include "counters/timing/counter_mode.h"

#include "counters/thread_row.h"
#include "counters/timing/places.h"
#include "os/hot_path.h"

static HFN_NOINLINE HFN_KEEPS_REGISTERS uint64_t read_other_clock(void)
{
    return hfn_time_now();
}

_Static_assert((HOTFN_CLOCK_TSC & HOTFN_CLOCK_ARM & 1) &&
                   !((HOTFN_CLOCK_MONOTONIC | HFN_CLOCK_STOPPED) & 1),
               "the processor's counters are odd");

static HFN_ALWAYS_INLINE uint64_t read_clock(void)
{
    return HFN_LIKELY(hfn_time.clock & 1) ? hfn_cpu_ticks() : read_other_clock();
}

HFN_KEEPS_REGISTERS void hfn_counter_reset_tick(hfn_time_state *t, uint64_t now)
{
    hfn_replace_tick(&t->last_tick, hfn_load_tick(&t->last_tick), now);
    __atomic_fetch_add(&hfn_time.header->clock_went_back, 1, __ATOMIC_RELAXED);
}

/* Charge the time since the latest event, minus the cost of a hook, to the place.  If a signal
 * handler with timed calls interrupts this, the handler has charged that time, and nothing is
 * charged here.  Returns the thread's own time. */
static HFN_ALWAYS_INLINE uint64_t charge_place(hfn_time_state *t, uint32_t node, uint32_t cost)
{
    uint64_t last = hfn_load_tick(&t->last_tick), now = read_clock(), ticks = now - last;

    if (HFN_UNLIKELY((int64_t)ticks < 0)) {
        hfn_counter_reset_tick(HFN_PASS(t), HFN_PASS(now));
    } else if (hfn_replace_tick(&t->last_tick, last, now)) {
        hfn_add_tick(&t->hook_ticks, cost);
        if (HFN_LIKELY(node != 0)) {
            hfn_add_tick(&hfn_place_at(node)->total_ticks, ticks - cost);
        }
    }
    return hfn_own_time(t);
}

HFN_KEEPS_REGISTERS void hfn_counter_enter(hfn_time_frame *f)
{
    hfn_time_state *t = hfn_state_for_entry(hfn_thread_row);
    uint32_t depth, child;
    hfn_open_call *call;

    if (HFN_UNLIKELY(!t)) {
        f->call_word = HFN_CALL_UNTIMED;
        return;
    }
    depth = hfn_open_calls_prepare(t, (uint64_t)(uintptr_t)f);
    child = hfn_place_enter(t, f, depth);
    if (HFN_UNLIKELY(child == 0)) {
        return;
    }
    call = hfn_open_calls_push(t, depth);
    f->start = charge_place(t, t->node, hfn_time.enter_cost);
    if (call) {
        call->start = f->start;
        call->call_word = f->call_word;
        call->frame = (uint64_t)(uintptr_t)f;
        t->started = depth + 1;
    }
    t->node = child;
    hfn_time_put_event(t, (uint32_t)f->slot & HFN_CALL_SLOT, 1);
}

HFN_KEEPS_REGISTERS void hfn_counter_exit(hfn_time_frame *f)
{
    hfn_time_state *t = hfn_state_for_exit(hfn_thread_row, f->call_word);
    uint32_t node = hfn_call_node(f->call_word);

    if (HFN_UNLIKELY(!t)) {
        return;
    }
    if (hfn_open_calls_is_innermost(t, f)) {
        charge_place(t, node, hfn_time.exit_cost);
        hfn_open_calls_pop(t, f->depth);
        t->started = f->depth;
        t->node = f->caller;
    } else {
        /* the inner calls have ended without an exit, or are suspended on another stack */
        charge_place(t, hfn_place_in_tree(HFN_PASS(t), HFN_PASS(node)), hfn_time.exit_cost);
        hfn_open_calls_remove(HFN_PASS(t), HFN_PASS(f));
        t->node = hfn_place_in_tree(HFN_PASS(t), f->caller);
    }
    if (HFN_LIKELY(hfn_place_at(node)->thread == t->thread - 1)) {
        hfn_place_add_length(HFN_PASS(t), HFN_PASS(f->call_word),
                             HFN_PASS(hfn_own_time(t) - f->start));
    }
    hfn_time_put_event(t, hfn_call_slot(f->call_word), 2);
}
