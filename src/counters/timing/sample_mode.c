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
 * The log holds the timed calls that are open, outermost first, as in tick_mode.c.  A call whose
 * frame lies below a new one was left by longjmp, or waits on another stack; if it ends after all,
 * its own frame has everything that is needed.
 */
#include "counters/timing/sample_mode.h"

#include "counters/thread_row.h"

#define ALWAYS_INLINE inline __attribute__((always_inline))
#define NOINLINE __attribute__((noinline))
#define BARRIER() __asm__ volatile("" ::: "memory")

/* As the frame of a call in the log: an exception has passed the call. */
#define LEFT_FRAME 1u
#define SESSION_BITS (UINT32_C(15) << HFN_CALL_SESSION_SHIFT)

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

static NOINLINE HFN_KEEPS_REGISTERS void add_call(hfn_time_state *t, uint64_t how, uint64_t start,
                                                  uint64_t now, uint32_t interval)
{
    hfn_time_cell *c = hfn_time_cell_of(t, hfn_call_slot(how) + 1);
    uint64_t begin = start < t->floor ? t->floor : start;
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
        hfn_tree_keep_slow(HFN_PASS(t), HFN_PASS(hfn_call_slot(how)), 0, HFN_PASS(start),
                           HFN_PASS(passed));
    }
}

/* ---- The log. */

static void cut_log(hfn_time_state *t, uint32_t depth)
{
    hfn_open_call *log = hfn_time_log_of(t);

    for (uint32_t i = t->depth < HFN_LOG_CAPACITY ? t->depth : HFN_LOG_CAPACITY; i-- > depth;) {
        if (log[i].frame > LEFT_FRAME) {
            __atomic_fetch_add(&hfn_time.header->abandoned_exits, 1, __ATOMIC_RELAXED);
        }
        log[i].frame = 0;
    }
    t->depth = depth;
}

/* A free place of the log has the frame 0. */
static ALWAYS_INLINE bool was_left(const hfn_open_call *call, uint64_t frame)
{
    return call->frame - 1 < frame;
}

static NOINLINE HFN_KEEPS_REGISTERS void remove_left_calls(hfn_time_state *t, uint64_t frame)
{
    const hfn_open_call *log = hfn_time_log_of(t);
    uint32_t depth = t->depth;

    while (depth > 0 && depth <= HFN_LOG_CAPACITY && was_left(&log[depth - 1], frame)) {
        depth--;
    }
    if (depth < t->depth) {
        cut_log(t, depth);
    }
}

static void remove_call(hfn_time_state *t, const hfn_time_frame *f)
{
    hfn_open_call *log = hfn_time_log_of(t);
    bool is_logged = f->depth < HFN_LOG_CAPACITY;

    if (f->depth >= t->depth || (is_logged && log[f->depth].frame != (uint64_t)(uintptr_t)f)) {
        return; /* it waited on another stack, and was removed */
    }
    if (is_logged) {
        log[f->depth].frame = LEFT_FRAME; /* it was not abandoned */
    }
    cut_log(t, f->depth);
}

/* ---- Enter and exit. */

static void put_event(hfn_time_state *t, uint64_t now, uint32_t slot, uint32_t kind)
{
    hfn_time_event *e;

    if (!hfn_time.events || t->thread == 0) {
        return;
    }
    e = hfn_time.events + (uint64_t)(t->thread - 1) * (hfn_time.event_mask + UINT64_C(1)) +
        (t->events++ & hfn_time.event_mask);
    e->kind = 0;
    BARRIER();
    e->ticks = now;
    e->slot = slot;
    BARRIER();
    e->kind = kind;
}

HFN_KEEPS_REGISTERS void hfn_time_enter_sampled(hfn_time_frame *f)
{
    uint8_t *row = hfn_thread_row;
    uint32_t slot = (uint32_t)f->slot & HFN_CALL_SLOT, depth, interval;
    uint64_t frame = (uint64_t)(uintptr_t)f;
    hfn_open_call *log;
    hfn_time_state *t;

    f->how = HFN_CALL_UNTIMED;
    if (HFN_UNLIKELY(!row || hfn_time.clock == HFN_CLOCK_STOPPED ||
                     hfn_time_state_of(row)->depth >= HFN_DEPTH_CLOSED)) {
        return;
    }
    t = hfn_time_state_of(row);
    interval = choose_call(t, slot);
    if (interval == 0) {
        return;
    }
    log = hfn_time_log_of(t);
    if (t->depth - 1 < HFN_LOG_CAPACITY && was_left(&log[t->depth - 1], frame)) {
        remove_left_calls(HFN_PASS(t), HFN_PASS(frame));
    }
    depth = t->depth;
    hfn_time_cell_of(t, slot + 1)->open = 1; /* a reader looks for open calls of used cells */
    f->depth = depth;
    f->how = slot | hfn_time.session;
    f->room = interval;
    t->depth = depth + 1; /* until then a handler's calls may use the place */
    f->start = hfn_time_now();
    hfn_store_tick(&t->last_tick, f->start);
    if (HFN_LIKELY(depth < HFN_LOG_CAPACITY)) {
        BARRIER();
        log[depth].frame = frame;
        log[depth].start = f->start;
        log[depth].interval = interval;
        log[depth].how = f->how;
    }
    put_event(t, f->start, slot, 1);
}

HFN_KEEPS_REGISTERS void hfn_time_exit_sampled(hfn_time_frame *f)
{
    uint8_t *row = hfn_thread_row;
    hfn_time_state *t;
    uint64_t now;

    if (HFN_UNLIKELY(!row || (f->how & HFN_CALL_UNTIMED) || hfn_time.begin_ticks == HFN_TIME_OFF ||
                     ((uint32_t)f->how & SESSION_BITS) != hfn_time.session)) {
        return;
    }
    t = hfn_time_state_of(row);
    now = hfn_time_now();
    remove_call(t, f);
    if ((int64_t)(now - hfn_load_tick(&t->last_tick)) > 0) {
        hfn_store_tick(&t->last_tick, now);
    }
    add_call(HFN_PASS(t), HFN_PASS(f->how), HFN_PASS(f->start), HFN_PASS(now),
             HFN_PASS((uint32_t)f->room));
    put_event(t, now, hfn_call_slot(f->how), 2);
}

/* ---- Exceptions and ends. */

/* A call of the log ends, of which no frame may be left. */
static void end_logged(hfn_time_state *t, hfn_open_call *call, uint64_t now)
{
    if (call->frame > LEFT_FRAME) {
        add_call(t, call->how, call->start, now, (uint32_t)call->interval);
    }
    call->frame = LEFT_FRAME;
}

void hfn_sample_leave(uint64_t frame)
{
    hfn_time_state *t = hfn_time_state_of(hfn_thread_row);
    hfn_open_call *log = hfn_time_log_of(t);
    uint32_t i = t->depth < HFN_LOG_CAPACITY ? t->depth : HFN_LOG_CAPACITY;

    while (i > 0 && (frame == 0 ? log[i - 1].frame <= LEFT_FRAME : log[i - 1].frame != frame)) {
        i--;
    }
    if (i == 0) {
        return;
    }
    end_logged(t, &log[i - 1], hfn_time_now());
    if (i == t->depth) {
        cut_log(t, i - 1);
    }
}

void hfn_sample_end_row(hfn_time_state *t, uint64_t now)
{
    hfn_open_call *log = hfn_time_log_of(t);
    uint32_t depth = t->depth < HFN_LOG_CAPACITY ? t->depth : HFN_LOG_CAPACITY;

    for (uint32_t i = depth; i-- > 0;) {
        end_logged(t, &log[i], now);
        log[i].frame = 0;
    }
    t->depth = 0;
}
