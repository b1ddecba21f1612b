/* SPDX-License-Identifier: MIT */
/*
 * HOT PATH: the two ends of a call that is timed as one of a sample.  General registers only, no
 * libc, no lock.
 *
 * The calls of a function in a thread are divided into blocks of `interval` calls, and one call of
 * each block, chosen at random, is timed; the stub counts the others down.  So each call is timed
 * with the same probability, whatever the program does, and a timed call represents `interval`
 * calls.  Only the calls of a function are known, not who made them and what they called.
 *
 * The open-call stack has only the calls that are timed.
 */
#include "counters/timing/sample_mode.h"

#include "counters/thread_row.h"
#include "counters/timing/call_tree.h"
#include "counters/timing/open_calls.h"

/* ---- Which calls. */

static uint32_t choose_interval(uint32_t slot)
{
    uint32_t interval;

    if (!hfn_time.means) {
        return hfn_time.sample_interval;
    }
    /* Pairs with the store in the budget's set_interval: any value is right. */
    interval = __atomic_load_n(&hfn_time.means[slot], __ATOMIC_RELAXED);
    interval = interval ? interval : HFN_SAMPLE_BEGIN;
    return interval > hfn_time.sample_interval ? interval : hfn_time.sample_interval;
}

static uint32_t choose_below(uint64_t *random, uint32_t end)
{
    *random = *random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((*random >> 32) * end >> 32);
}

/* Begin the next block.  Returns the number of its calls before the timed one. */
static uint32_t begin_block(hfn_time_state *t, hfn_time_gap *gap, uint32_t slot)
{
    uint32_t interval = choose_interval(slot), before = choose_below(&t->random, interval);

    gap->interval = interval;
    gap->after = interval - 1 - before;
    return before;
}

/* The number of calls that this one represents; 0: it is not timed.  A thread's first calls of a
 * function are no more likely to be timed than others. */
static uint32_t choose_call(hfn_time_state *t, uint32_t slot)
{
    hfn_time_gap *gap = hfn_time_gap_of(t, slot);
    uint32_t interval = gap->interval, after = gap->after;

    if (interval == 0) {
        uint32_t before = begin_block(t, gap, slot);
        if (before > 0) {
            *hfn_time_skip_of(t, slot) = before - 1;
            return 0;
        }
        interval = gap->interval;
        after = gap->after;
    }
    *hfn_time_skip_of(t, slot) = after + begin_block(t, gap, slot);
    return interval;
}

/* ---- The sums. */

static uint64_t add_or_saturate(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* interval * (interval - 1) times the square of the length, in units of 2^12 ticks^2. */
static uint64_t compute_square(uint64_t ticks, uint32_t interval)
{
    uint64_t length = ticks >> HFN_SAMPLE_SHIFT, pairs = (uint64_t)interval * (interval - 1);

    if (length >> 31 != 0) {
        return UINT64_MAX;
    }
    length *= length;
    if (pairs == 0 || length == 0) {
        return 0;
    }
    return __builtin_clzll(pairs) + __builtin_clzll(length) >= 64 ? pairs * length : UINT64_MAX;
}

static HFN_NOINLINE HFN_KEEPS_REGISTERS void add_call(hfn_time_state *t, uint64_t call_word,
                                                      uint64_t start, uint64_t now,
                                                      uint32_t interval)
{
    hfn_time_cell *c = hfn_time_cell_of(t, hfn_call_slot(call_word));
    uint64_t begin = start < t->epoch ? t->epoch : start;
    uint64_t passed = (int64_t)(now - begin) > 0 ? now - begin : 0, index;

    c->timed_calls++;
    c->total_ticks += passed * interval;
    c->sampled.weight += interval;
    c->sampled.squares = add_or_saturate(c->sampled.squares, compute_square(passed, interval));
    if (passed > c->max_ticks) {
        c->max_ticks = passed;
    }
    t->timed++;
    if ((hfn_time.flags & HOTFN_TIMING_HISTOGRAMS) &&
        hfn_tree_find_bucket(HFN_PASS(c), HFN_PASS(passed), HFN_PASS(&index))) {
        hfn_time.histograms[index] += interval;
    }
    if (HFN_UNLIKELY(passed >= hfn_time.slow_ticks)) {
        hfn_tree_keep_slow(HFN_PASS(t), HFN_PASS(hfn_call_slot(call_word)), 0, HFN_PASS(start),
                           HFN_PASS(passed));
    }
}

/* ---- Enter and exit. */

HFN_KEEPS_REGISTERS void hfn_time_enter_sampled(hfn_time_frame *f)
{
    hfn_time_state *t = hfn_state_for_entry(hfn_thread_row);
    uint32_t slot = (uint32_t)f->slot & HFN_CALL_SLOT, interval;
    hfn_open_call *call;

    hfn_count_frames(hfn_thread_row, 1);
    f->call_word = HFN_CALL_UNTIMED;
    if (HFN_UNLIKELY(!t)) {
        return;
    }
    interval = choose_call(t, slot);
    if (interval == 0) {
        return;
    }
    f->depth = hfn_open_calls_prepare(t, (uint64_t)(uintptr_t)f);
    hfn_time_cell_of(t, slot)->open = 1; /* a reader looks for open calls of used cells */
    f->call_word = slot | hfn_time.session;
    f->room = interval;
    call = hfn_open_calls_push(t, f->depth);
    f->start = hfn_time_now();
    hfn_store_tick(&t->last_tick, f->start);
    if (call) {
        call->start = f->start;
        call->interval = interval;
        call->call_word = f->call_word;
        call->frame = (uint64_t)(uintptr_t)f;
    }
    hfn_time_put_event(t, slot, 1);
}

HFN_KEEPS_REGISTERS void hfn_time_exit_sampled(hfn_time_frame *f)
{
    hfn_time_state *t = hfn_state_for_exit(hfn_thread_row, f->call_word);
    uint64_t now;

    hfn_count_frames(hfn_thread_row, -1);
    if (HFN_UNLIKELY(!t)) {
        return;
    }
    now = hfn_time_now();
    if (hfn_open_calls_is_innermost(t, f)) {
        hfn_open_calls_pop(t, f->depth);
    } else {
        hfn_open_calls_remove(HFN_PASS(t), HFN_PASS(f));
    }
    if ((int64_t)(now - hfn_load_tick(&t->last_tick)) > 0) {
        hfn_store_tick(&t->last_tick, now);
    }
    add_call(HFN_PASS(t), HFN_PASS(f->call_word), HFN_PASS(f->start), HFN_PASS(now),
             HFN_PASS((uint32_t)f->room));
    hfn_time_put_event(t, hfn_call_slot(f->call_word), 2);
}

void hfn_sample_end_call(hfn_time_state *t, const hfn_open_call *call, uint64_t now)
{
    add_call(t, call->call_word, call->start, now, (uint32_t)call->interval);
}
