/* SPDX-License-Identifier: MIT */
/*
 * HOT PATH: the two ends of a timed call by a tick clock.  General registers only, no libc, no
 * lock.
 *
 * The clock is a word that another thread advances every few microseconds, so most calls begin and
 * end between two ticks.  Such a call costs two loads of the word, which find it as it was, and the
 * count of its place in the call tree.  A tick is charged to the place that is current when a hook
 * first sees it; ticks come at random, so over many calls each place gets its share, however short
 * its calls are.  A tick that comes while a hook runs is charged to no place.
 *
 *     enter: charge new ticks to the caller's place; make the callee's place current;
 *            new ticks since are the hook's
 *     exit:  charge new ticks to the call's place; make its caller's place current;
 *            new ticks since are the hook's
 *
 * The first `started` open calls have a start: the thread's own time at the last tick before the
 * call began.  The others began after the latest tick, so no time has passed in them.
 */
#include "counters/timing/tick_mode.h"

#include "counters/thread_row.h"
#include "counters/timing/places.h"
#include "counters/timing/waiting.h"

static HFN_ALWAYS_INLINE bool is_new_tick(const hfn_time_state *t)
{
    return hfn_load_tick(hfn_time.tick) != hfn_load_tick(&t->last_tick);
}

/* The same, but the processor loads the clock only when the value is known.  Otherwise it would
 * often load it long before the code that computes the value is finished. */
static HFN_ALWAYS_INLINE bool is_new_tick_behind(const hfn_time_state *t, uintptr_t value)
{
    const uint64_t *tick = (const uint64_t *)((uintptr_t)hfn_time.tick + hfn_cpu_zero_of(value));

    return hfn_load_tick(tick) != hfn_load_tick(&t->last_tick);
}

/* Returns the ticks since the latest ones that were taken, and takes them.  If a handler interrupts
 * here and takes them, none remain. */
static uint64_t take_ticks(hfn_time_state *t)
{
    uint64_t last = hfn_load_tick(&t->last_tick), now = hfn_load_tick(hfn_time.tick);

    return (int64_t)(now - last) > 0 && hfn_replace_tick(&t->last_tick, last, now) ? now - last : 0;
}

void hfn_tick_start_calls(hfn_time_state *t, uint64_t time)
{
    hfn_open_call *log = hfn_open_calls_of(t);
    uint32_t depth = hfn_open_calls_count(t);

    for (uint32_t i = t->started; i < depth; i++) {
        log[i].start = time;
    }
    t->started = depth > t->started ? depth : t->started;
}

static HFN_NOINLINE HFN_KEEPS_REGISTERS void charge_place(hfn_time_state *t, uint32_t node)
{
    uint64_t before = hfn_own_time(t), ticks = take_ticks(t);

    if (ticks == 0) {
        return;
    }
    hfn_tick_start_calls(t, before);
    if (node != 0) {
        hfn_add_tick(&hfn_place_at(node)->total_ticks, ticks);
    }
    hfn_waiting_note(t, node, ticks);
    if (HFN_UNLIKELY(hfn_waiting_is_due(t))) {
        hfn_waiting_read(HFN_PASS(t));
    }
}

HFN_KEEPS_REGISTERS void hfn_tick_charge_hook(hfn_time_state *t)
{
    uint64_t ticks = take_ticks(t);

    hfn_add_tick(&t->hook_ticks, ticks);
    hfn_waiting_note(t, 0, ticks);
}

HFN_KEEPS_REGISTERS void hfn_tick_enter(hfn_time_frame *f, uintptr_t first_argument)
{
    hfn_time_state *t = hfn_state_for_entry(hfn_thread_row);
    uint32_t depth, child;
    hfn_open_call *call;

    hfn_count_frames(hfn_thread_row, 1);
    if (HFN_UNLIKELY(!t)) {
        f->call_word = HFN_CALL_UNTIMED;
        return;
    }
    if (HFN_UNLIKELY(is_new_tick_behind(t, first_argument))) {
        charge_place(HFN_PASS(t), HFN_PASS(t->node));
    }
    depth = hfn_open_calls_prepare(t, (uint64_t)(uintptr_t)f);
    child = hfn_place_enter(t, f, depth);
    if (HFN_UNLIKELY(child == 0)) {
        return;
    }
    call = hfn_open_calls_push(t, depth);
    if (call) {
        call->frame = (uint64_t)(uintptr_t)f;
        call->call_word = f->call_word;
    }
    t->node = child;
    if (HFN_UNLIKELY(is_new_tick(t))) {
        hfn_tick_charge_hook(HFN_PASS(t));
    }
}

HFN_KEEPS_REGISTERS void hfn_tick_exit(hfn_time_frame *f, uintptr_t result)
{
    hfn_time_state *t = hfn_state_for_exit(hfn_thread_row, f->call_word);
    uint32_t depth = f->depth;

    hfn_count_frames(hfn_thread_row, -1);
    if (HFN_UNLIKELY(!t)) {
        return;
    }
    if (hfn_open_calls_is_innermost(t, f)) {
        if (HFN_UNLIKELY(is_new_tick_behind(t, result))) {
            charge_place(HFN_PASS(t), hfn_call_node(f->call_word));
        }
        uint64_t start = hfn_open_calls_of(t)[depth].start;
        bool is_long = t->started > depth;
        hfn_open_calls_pop(t, depth);
        t->node = f->caller;
        if (HFN_UNLIKELY(is_long)) {
            t->started = depth;
            hfn_place_add_length(HFN_PASS(t), HFN_PASS(f->call_word),
                                 HFN_PASS(hfn_own_time(t) - start));
        }
    } else {
        /* the calls further in are over, or wait on another stack */
        charge_place(HFN_PASS(t), hfn_place_in_tree(HFN_PASS(t), hfn_call_node(f->call_word)));
        hfn_open_calls_remove(HFN_PASS(t), HFN_PASS(f));
        t->node = hfn_place_in_tree(HFN_PASS(t), f->caller);
    }
    if (HFN_UNLIKELY(is_new_tick(t))) {
        hfn_tick_charge_hook(HFN_PASS(t));
    }
}
