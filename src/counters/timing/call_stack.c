/* SPDX-License-Identifier: MIT */
/* length: up to 860 lines because the issue on true times replaces this file. */
/* HOT PATH: the two ends of a timed call.  They run between a function and its caller, which may keep
 * values in any register: general registers only, all of them kept, no libc, no lock.
 *
 * Own time is kept by intervals: what passes between two events of a thread belongs to the function
 * that was current then.  So the sum of all own times is the time that passed, whatever stacks the
 * thread ran on.  What an exit restores it takes from the call's own frame on the thread's stack: calls
 * may end in any order, and on another thread than they began on.
 *
 * The log says which calls are open.  A call in it whose frame lies below a new one was left by
 * longjmp, or waits on another stack.  Nobody can tell which, so it goes to suspended: if it ends after
 * all, it is taken out; if its place on the stack is used again, it had been left when it was last
 * seen.  No frame is ever read through the log: its memory may be gone.
 *
 * A signal may strike at any instruction, and its handler may make timed calls: each store leaves a
 * state that an enter and exit in between restore (call_strikes_test.c has one strike at each). */
#include "counters/timing/call_stack.h"

#include "counters/thread_row.h"
#include "counters/timing/sample_mode.h"
#include "counters/timing/tick_mode.h"
#include "os/hot_path.h"

hfn_time_engine hfn_time;

#define BARRIER() __asm__ volatile("" ::: "memory")
#define ALWAYS_INLINE inline __attribute__((always_inline))
#define NOINLINE __attribute__((noinline))
/* Frames of one stack that follow each other are closer than this; stacks are larger. */
#define NEXT_FRAME_BYTES 16384u

typedef enum kept { KEPT_TIMES, KEPT_ALL } kept;

static NOINLINE HFN_KEEPS_REGISTERS uint64_t system_ticks(void)
{
    if (hfn_time.clock == HFN_CLOCK_STOPPED) {
        return hfn_thread_row ? hfn_load_tick(&hfn_time_state_of(hfn_thread_row)->last_tick) : 0;
    }
    return hfn_os_hot_monotonic_ns();
}

_Static_assert((HOTFN_CLOCK_TSC & HOTFN_CLOCK_ARM & 1) &&
                   !((HOTFN_CLOCK_MONOTONIC | HFN_CLOCK_STOPPED) & 1),
               "the processor's counters are odd");

static ALWAYS_INLINE uint64_t ticks(void)
{
    return HFN_LIKELY(hfn_time.clock & 1) ? hfn_cpu_ticks() : system_ticks();
}

uint64_t hfn_time_now(void)
{
    return hfn_time.tick ? hfn_load_tick(hfn_time.tick) : ticks();
}

static ALWAYS_INLINE uint64_t address_of(const hfn_time_frame *f)
{
    return (uint64_t)(uintptr_t)f;
}

/* ---- Sums. */

HFN_KEEPS_REGISTERS void hfn_time_went_back(void)
{
    __atomic_fetch_add(&hfn_time.header->clock_went_back, 1, __ATOMIC_RELAXED);
}

/* Since the thread's latest event its current call ran.  False: that event is younger than now. */
static ALWAYS_INLINE bool pass_time(hfn_time_state *t, uint32_t current, uint64_t now)
{
    uint64_t passed = now - hfn_load_tick(&t->last_tick);

    if (HFN_UNLIKELY((int64_t)passed < 0)) {
        return false;
    }
    hfn_store_tick(&t->last_tick, now);
    hfn_add_tick(&hfn_time_cell_of(t, current)->self_ticks, passed);
    return true;
}

/* It is a handler's, which struck since the clock was read (it strikes there most: the processor waits for its
 * counter), and has counted its time; or the clock went back. Answers the time that it is now. */
static NOINLINE HFN_KEEPS_REGISTERS uint64_t pass_time_again(hfn_time_state *t, uint32_t current)
{
    uint64_t now = ticks();

    if (!pass_time(t, current, now)) {
        hfn_store_tick(&t->last_tick, now);
        hfn_time_went_back();
    }
    return now;
}

static ALWAYS_INLINE uint64_t duration(const hfn_time_state *t, uint64_t start, uint64_t end)
{
    start = start < t->floor ? t->floor : start;
    return HFN_LIKELY((int64_t)(end - start) >= 0) ? end - start : 0;
}

static ALWAYS_INLINE void sum_up(hfn_time_state *t, hfn_time_cell *c, uint64_t passed, uint64_t how,
                                 uint64_t timed_before)
{
    c->timed_calls++;
    if (HFN_UNLIKELY(passed < c->min_ticks - 1)) {
        c->min_ticks = passed + 1;
    }
    if (HFN_UNLIKELY(passed > c->max_ticks)) {
        c->max_ticks = passed;
    }
    if (HFN_LIKELY(!(how & HFN_CALL_NESTED))) {
        c->total_ticks += passed;
        c->within_timed += t->timed + 1 - timed_before;
        c->open = 0;
    }
    t->timed++;
}

static ALWAYS_INLINE void add_to_histogram(hfn_time_cell *c, uint64_t passed)
{
    uint64_t index;

    if (hfn_tree_find_bucket(HFN_PASS(c), HFN_PASS(passed), HFN_PASS(&index))) {
        hfn_time.histograms[index]++;
    }
}

static ALWAYS_INLINE void put_event(hfn_time_state *t, uint64_t now, uint32_t slot, uint32_t kind)
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

/* ---- The tree. */

/* The call's node + 1; 0: none, and its caller's if *flags says MERGED. */
static ALWAYS_INLINE uint32_t enter_node(hfn_time_state *t, uint32_t slot, uint32_t *flags)
{
    uint32_t parent = t->node, child;

    if (!(hfn_time.flags & HOTFN_TIMING_TREE) || t->thread == 0) {
        return 0;
    }
    if (HFN_UNLIKELY(parent == 0)) {
        parent = hfn_tree_root(HFN_PASS(t));
    }
    if (HFN_UNLIKELY(parent == 0)) {
        return 0;
    }
    child = (uint32_t)*hfn_node_last_child(&hfn_time.nodes[parent - 1]); /* entered last */
    if (child == 0 || hfn_time.nodes[child - 1].slot != slot) {
        child = hfn_tree_child(HFN_PASS(t), HFN_PASS(parent), HFN_PASS(slot));
    }
    if (HFN_UNLIKELY(child == 0)) {
        t->node = parent;
        *flags |= HFN_CALL_MERGED;
        return parent;
    }
    t->node = child;
    hfn_time.nodes[child - 1].calls++;
    return child;
}

static ALWAYS_INLINE void exit_node(hfn_time_state *t, uint64_t how, uint64_t passed)
{
    uint32_t node = hfn_call_node(how);
    hfn_time_node *n;

    if (node == 0) {
        return;
    }
    if (how & HFN_CALL_MERGED) {
        t->node = node;
        return;
    }
    n = &hfn_time.nodes[node - 1];
    n->total_ticks += passed;
    n->timed_calls++;
    t->node = n->parent + 1;
}

/* ---- Calls that were left, or wait. */

/* Its frame lies below a new one at `frame`.  A place of the log that is free, or is just being taken (a
 * signal handler may see that), holds 0 as its frame. */
static ALWAYS_INLINE bool lies_below(const hfn_open_call *call, uint64_t frame)
{
    return call->frame - 1 < frame;
}

static void forget(hfn_time_state *t, hfn_waiting_call *suspended, uint32_t index)
{
    suspended[index] = suspended[t->suspended_count - 1];
    t->suspended_count--;
}

static void put_into_suspended(hfn_time_state *t, const hfn_open_call *call)
{
    if (t->suspended_count == 0 || call->frame < t->suspended_low) {
        t->suspended_low = call->frame;
    }
    if (t->suspended_count == 0 || call->frame > t->suspended_high) {
        t->suspended_high = call->frame;
    }
    hfn_time_suspended_of(t)[t->suspended_count++] =
        (hfn_waiting_call){ *call, t->last_tick, t->timed - call->timed_before };
}

static HFN_KEEPS_REGISTERS void set_aside(hfn_time_state *t, uint32_t depth)
{
    hfn_open_call *log = hfn_time_log_of(t);
    uint32_t end = t->depth < HFN_LOG_CAPACITY ? t->depth : HFN_LOG_CAPACITY;

    for (uint32_t i = depth; i < end; i++) {
        if (!(log[i].how & HFN_CALL_ENDED) && t->suspended_count < HFN_SUSPENDED_CAPACITY) {
            put_into_suspended(t, &log[i]);
        }
        log[i].frame = 0;
    }
    t->depth = depth;
}

/* The innermost call of the log is the current one. */
static void make_current(hfn_time_state *t)
{
    hfn_open_call *log = hfn_time_log_of(t);
    const hfn_open_call *top;

    while (t->depth > 0 && t->depth <= HFN_LOG_CAPACITY && log[t->depth - 1].how & HFN_CALL_ENDED) {
        log[--t->depth].frame = 0;
    }
    top = t->depth > 0 ? &log[t->depth - 1] : NULL;
    t->current = top ? hfn_call_slot(top->how) + 1 : 0;
    t->node = top ? hfn_call_node(top->how) : hfn_outside_node(t);
}

/* It ended without its stub's knowledge. */
static void account(hfn_time_state *t, const hfn_open_call *call, uint64_t end,
                    uint64_t timed_within)
{
    hfn_time_cell *c = hfn_time_cell_of(t, hfn_call_slot(call->how) + 1);
    uint32_t node = t->node;
    uint64_t passed = duration(t, call->start, end);

    sum_up(t, c, passed, call->how, t->timed - timed_within);
    exit_node(t, call->how, passed);
    t->node = node; /* whose call runs is settled by who calls us */
    if (hfn_time.flags & HOTFN_TIMING_HISTOGRAMS) {
        add_to_histogram(c, passed);
    }
}

/* A new frame stands at `frame`: what lay between it and the next one of this stack is gone. */
static HFN_KEEPS_REGISTERS void empty_suspended(hfn_time_state *t, uint64_t frame)
{
    const hfn_open_call *log = hfn_time_log_of(t);
    hfn_waiting_call *suspended = hfn_time_suspended_of(t);
    uint64_t behind = frame + HFN_TIME_FRAME_BYTES;

    if (t->depth > 0 && t->depth <= HFN_LOG_CAPACITY &&
        log[t->depth - 1].frame - frame <= NEXT_FRAME_BYTES) {
        behind = log[t->depth - 1].frame;
    }
    if (frame > t->suspended_high || behind <= t->suspended_low) {
        return;
    }
    for (uint32_t i = t->suspended_count; i-- > 0;) {
        hfn_waiting_call w = suspended[i];

        if (w.call.frame >= frame && w.call.frame < behind) {
            forget(t, suspended, i);
            account(t, &w.call, w.end, w.timed_within);
            __atomic_fetch_add(&hfn_time.header->abandoned_exits, 1, __ATOMIC_RELAXED);
        }
    }
}

/* An exception leaves the unwinder's own calls: they were set aside when the frames above them ended,
 * and the last of them to end made one of them current. */
static bool current_was_left(hfn_time_state *t, uint64_t frame)
{
    const hfn_waiting_call *suspended = hfn_time_suspended_of(t);

    for (uint32_t i = 0; i < t->suspended_count; i++) {
        if (hfn_call_slot(suspended[i].call.how) + 1 == t->current &&
            hfn_call_node(suspended[i].call.how) == t->node && suspended[i].call.frame <= frame) {
            return true;
        }
    }
    return false;
}

/* Before a call begins at `frame`. */
static NOINLINE HFN_KEEPS_REGISTERS void settle(hfn_time_state *t, uint64_t frame)
{
    const hfn_open_call *log = hfn_time_log_of(t);
    uint32_t depth = t->depth;

    if (depth <= HFN_LOG_CAPACITY) {
        while (depth > 0 && lies_below(&log[depth - 1], frame)) {
            depth--;
        }
        if (depth < t->depth) {
            set_aside(HFN_PASS(t), HFN_PASS(depth));
            make_current(t);
        }
    }
    if (t->suspended_count > 0) {
        if (current_was_left(t, frame)) {
            make_current(t);
        }
        empty_suspended(HFN_PASS(t), HFN_PASS(frame));
    }
}

/* A call ends that is not the innermost one of the log.  How much had been timed before it began; where nobody
 * knows, nothing was in it. */
static NOINLINE HFN_KEEPS_REGISTERS uint64_t end_out_of_order(hfn_time_state *t,
                                                              const hfn_time_frame *f, uint64_t now)
{
    hfn_open_call *log = hfn_time_log_of(t);
    hfn_waiting_call *suspended = hfn_time_suspended_of(t);
    uint64_t frame = address_of(f), before = t->timed;
    bool logged = f->depth < HFN_LOG_CAPACITY;

    if (t->last_tick == 0) { /* a forked child's first event, in a wiped row (around_fork.c) */
        hfn_store_tick(&t->last_tick, t->floor = now);
    }
    t->current = hfn_call_slot(f->how) + 1; /* what was begun since is over, or waits */
    if (f->depth < t->depth && (!logged || log[f->depth].frame == frame)) {
        if (f->depth + 1 < t->depth) {
            set_aside(HFN_PASS(t), f->depth + 1);
        }
        if (logged) {
            before = log[f->depth].timed_before;
            log[f->depth].frame = 0;
        }
        t->depth = f->depth;
        return before;
    }
    for (uint32_t i = t->suspended_count; i-- > 0;) {
        if (suspended[i].call.frame == frame && suspended[i].call.start == f->start) {
            before = suspended[i].call.timed_before;
            forget(t, suspended, i);
            return before;
        }
    }
    return before;
}

/* ---- Enter and exit. */

/* Is a call of the slot open further out?  The cell knows where it would be, the log whether it is. */
static ALWAYS_INLINE bool is_nested(const hfn_open_call *log, uint32_t open, uint32_t slot,
                                    uint32_t depth)
{
    if (HFN_LIKELY(open == 0) || open > depth) {
        return false;
    }
    return open > HFN_LOG_CAPACITY ||
           ((uint32_t)log[open - 1].how & (HFN_CALL_SLOT | HFN_CALL_ENDED)) == slot;
}

/* HFN_CALL_NESTED, or 0. */
static ALWAYS_INLINE uint32_t open_call(hfn_time_cell *c, const hfn_open_call *log, uint32_t slot,
                                        uint32_t depth)
{
    if (HFN_UNLIKELY(is_nested(log, c->open, slot, depth))) {
        return HFN_CALL_NESTED;
    }
    c->open = depth + 1;
    return 0;
}

/* Does an end of a call look at what it takes itself?  Of what more than times is kept of, few do:
 * the clock's lowest bits are as good as chance. */
static ALWAYS_INLINE bool looks_at_itself(kept what, uint64_t tick)
{
    return what == KEPT_ALL && HFN_UNLIKELY((tick & hfn_time.looks) == 0);
}

/* What frame and log both hold stays in registers meanwhile: reading words that were just written in
 * halves would cost more than all the rest.
 * length: up to 76 lines because the issue on true times replaces it. */
static ALWAYS_INLINE void enter(hfn_time_frame *f, kept what)
{
    uint8_t *row = hfn_thread_row;
    uint32_t slot = (uint32_t)f->slot, depth, flags, node = 0, caller;
    uint64_t begin, now, timed, how;
    hfn_open_call *log;
    hfn_time_state *t;

    /* no row: the counters were given up since the stub's first instruction */
    if (HFN_UNLIKELY(!row || hfn_time.clock == HFN_CLOCK_STOPPED ||
                     hfn_time_state_of(row)->depth >= HFN_DEPTH_CLOSED)) {
        f->how = HFN_CALL_UNTIMED;
        return;
    }
    t = hfn_time_state_of(row);
    begin = looks_at_itself(what, hfn_load_tick(&t->last_tick)) ? ticks() : 0;
    log = hfn_time_log_of(t);
    depth = t->depth;
    bool left =
        HFN_LIKELY(depth - 1 < HFN_LOG_CAPACITY) && lies_below(&log[depth - 1], address_of(f));
    if (HFN_UNLIKELY(left || t->suspended_count > 0)) {
        settle(HFN_PASS(t), HFN_PASS(address_of(f)));
        depth = t->depth;
    }
    hfn_time_cell *c = hfn_time_cell_of(t, slot + 1);
    flags = open_call(c, log, slot, depth);
    caller = t->current;
    timed = t->timed;
    hfn_time_cell_of(t, caller)->callee_timed++;
    if (what == KEPT_ALL) {
        node = enter_node(t, slot, &flags);
    }
    how = slot | flags | (uint64_t)node << HFN_CALL_NODE_SHIFT;
    f->caller = caller;
    f->depth = depth;
    f->how = how;
    if (HFN_LIKELY(depth < HFN_LOG_CAPACITY)) {
        hfn_open_call *e = &log[depth];

        t->depth = depth + 1; /* until then a handler's calls may use the place */
        BARRIER();
        e->frame = address_of(f);
        e->timed_before = timed;
        e->how = how;
        now = ticks();
        e->start = now;
    } else {
        t->depth = depth + 1;
        now = ticks();
    }
    if (HFN_UNLIKELY(!pass_time(t, caller, now))) {
        now = pass_time_again(HFN_PASS(t), HFN_PASS(caller));
        if (depth < HFN_LOG_CAPACITY) {
            log[depth].start = now;
        }
    }
    t->current = slot + 1;
    f->start = now;
    if (what != KEPT_TIMES) {
        put_event(t, now, slot, 1);
    }
    if (what == KEPT_ALL && HFN_UNLIKELY(begin != 0)) {
        hfn_time_end_took(HFN_PASS(now - begin));
    }
}

static ALWAYS_INLINE void leave(hfn_time_frame *f, kept what)
{
    uint8_t *row = hfn_thread_row;
    uint32_t depth = f->depth;
    uint64_t how = f->how, now, passed, timed_before;
    hfn_open_call *e;
    hfn_time_cell *c;
    hfn_time_state *t;

    if (HFN_UNLIKELY(!row || (how & HFN_CALL_UNTIMED) || f->start < hfn_time.begin_ticks)) {
        return;
    }
    now = ticks();
    t = hfn_time_state_of(row);
    c = hfn_time_cell_of(t, hfn_call_slot(how) + 1);
    e = &hfn_time_log_of(t)[depth];
    if (HFN_LIKELY(depth < HFN_LOG_CAPACITY && t->depth == depth + 1 &&
                   e->frame == address_of(f))) {
        timed_before = e->timed_before;
        e->frame = 0;
        BARRIER(); /* from then on the place is a handler's */
        t->depth = depth;
    } else {
        timed_before = end_out_of_order(HFN_PASS(t), HFN_PASS(f), HFN_PASS(now));
    }
    if (HFN_UNLIKELY(!pass_time(t, t->current, now))) {
        now = pass_time_again(HFN_PASS(t), HFN_PASS(t->current));
    }
    t->current = f->caller;
    passed = duration(t, f->start, now);
    sum_up(t, c, passed, how, timed_before);
    if (what == KEPT_ALL) {
        exit_node(t, how, passed);
    }
    if (what != KEPT_TIMES) {
        if (hfn_time.flags & HOTFN_TIMING_HISTOGRAMS) {
            add_to_histogram(c, passed);
        }
        put_event(t, now, hfn_call_slot(how), 2);
        if (HFN_UNLIKELY(passed >= hfn_time.slow_ticks)) {
            hfn_tree_keep_slow(HFN_PASS(t), HFN_PASS(hfn_call_slot(how)),
                               HFN_PASS(hfn_call_node(how)), f->start, HFN_PASS(passed));
        }
    }
    if (looks_at_itself(what, now)) {
        hfn_time_end_took(HFN_PASS(ticks() - now));
    }
    if (what == KEPT_TIMES && HFN_UNLIKELY((uint16_t)t->timed == HFN_PROBE_AT)) {
        hfn_time_learn_cost();
    }
}

HFN_KEEPS_REGISTERS void hfn_time_enter(hfn_time_frame *frame)
{
    enter(frame, KEPT_TIMES);
}

HFN_KEEPS_REGISTERS void hfn_time_exit(hfn_time_frame *frame)
{
    leave(frame, KEPT_TIMES);
}

HFN_KEEPS_REGISTERS void hfn_time_enter_full(hfn_time_frame *frame)
{
    enter(frame, KEPT_ALL);
}

HFN_KEEPS_REGISTERS void hfn_time_exit_full(hfn_time_frame *frame)
{
    leave(frame, KEPT_ALL);
}

/* ---- Now and then. */

void hfn_time_begin_row(uint8_t *row, uint32_t thread)
{
    hfn_time_state *t = hfn_time_state_of(row);
    hfn_open_call *log = hfn_time_log_of(t);
    uint64_t now = hfn_time_now();

    for (uint32_t i = 0; i < t->depth && i < HFN_LOG_CAPACITY; i++) {
        log[i].frame = 0; /* of the thread that had the row before */
    }
    t->depth = t->started = 0;
    t->current = 0;
    t->node = hfn_outside_node(t);
    t->suspended_count = 0;
    t->alloc_frame = 0;
    t->floor = 0;
    t->last_tick = now;
    if (t->first_tick == 0) {
        t->first_tick = now;
    }
    t->thread = thread;
    t->random ^= now;
}

void hfn_time_begin_child(uint8_t *row)
{
    hfn_time_state *t = hfn_time_state_of(row);

    t->floor = t->last_tick;
}

static void add_cell(hfn_time_cell *to, const hfn_time_cell *from)
{
    to->total_ticks += from->total_ticks;
    to->self_ticks += from->self_ticks;
    to->timed_calls += from->timed_calls;
    if (hfn_time.flags & HOTFN_TIMING_SAMPLED) {
        to->sampled.weight += from->sampled.weight;
        to->sampled.squares += from->sampled.squares;
    } else {
        to->callee_timed += from->callee_timed;
        to->within_timed += from->within_timed;
    }
    if (from->min_ticks - 1 < to->min_ticks - 1) {
        to->min_ticks = from->min_ticks;
    }
    if (from->max_ticks > to->max_ticks) {
        to->max_ticks = from->max_ticks;
    }
}

void hfn_time_add_row(uint8_t *to, const uint8_t *from, uint32_t slots)
{
    hfn_time_state *sum = hfn_time_state_of(to);
    const hfn_time_state *t = (const void *)(from + hfn_time.thread_at);
    const hfn_time_cell *cells = &t->outside;

    sum->timed += t->timed;
    for (uint32_t i = 1; i <= slots; i++) {
        if (HFN_UNLIKELY(cells[i].self_ticks != 0 || cells[i].timed_calls != 0)) {
            add_cell(hfn_time_cell_of(sum, i), &cells[i]);
        }
    }
}

void hfn_time_end_row(uint8_t *row, uint64_t now)
{
    hfn_time_state *t = hfn_time_state_of(row);
    hfn_open_call *log = hfn_time_log_of(t);
    const hfn_waiting_call *suspended = hfn_time_suspended_of(t);

    if (hfn_time.flags & HOTFN_TIMING_SAMPLED) {
        hfn_sample_end_row(t, now);
        return;
    }
    if (hfn_time.tick) {
        hfn_tick_end_row(t);
        return;
    }
    if (t->depth > 0 && !pass_time(t, t->current, now)) {
        now = t->last_tick;
    }
    for (uint32_t i = t->depth < HFN_LOG_CAPACITY ? t->depth : HFN_LOG_CAPACITY; i-- > 0;) {
        if (log[i].frame != 0 && !(log[i].how & HFN_CALL_ENDED)) {
            account(t, &log[i], now, t->timed - log[i].timed_before);
            if (duration(t, log[i].start, now) >= hfn_time.slow_ticks) {
                hfn_tree_keep_slow(t, hfn_call_slot(log[i].how), hfn_call_node(log[i].how),
                                   log[i].start, duration(t, log[i].start, now));
            }
        }
        log[i].frame = 0;
    }
    for (uint32_t i = 0; i < t->suspended_count; i++) {
        account(t, &suspended[i].call, suspended[i].end, suspended[i].timed_within);
    }
    t->suspended_count = t->depth = t->current = 0;
    t->node = hfn_outside_node(t);
}

/* The unwinder may run in timed calls of its own, further in: they stay in the log, and current. */
void hfn_time_leave(uint64_t frame)
{
    hfn_time_state *t;
    hfn_open_call *log;
    bool is_innermost; /* but for calls that have ended */

    if (!hfn_thread_row || !hfn_time_is_on()) {
        return;
    }
    if (hfn_time.flags & HOTFN_TIMING_SAMPLED) {
        hfn_sample_leave(frame);
        return;
    }
    if (hfn_time.tick) {
        hfn_tick_leave(frame);
        return;
    }
    t = hfn_time_state_of(hfn_thread_row);
    log = hfn_time_log_of(t);
    is_innermost = t->depth <= HFN_LOG_CAPACITY;
    for (uint32_t i = is_innermost ? t->depth : HFN_LOG_CAPACITY; i-- > 0;) {
        if (log[i].how & HFN_CALL_ENDED) {
            continue;
        }
        if (frame != 0 && log[i].frame != frame) {
            is_innermost = false;
            continue;
        }
        pass_time_again(HFN_PASS(t), HFN_PASS(t->current));
        account(t, &log[i], t->last_tick, t->timed - log[i].timed_before);
        log[i].how |= HFN_CALL_ENDED;
        if (is_innermost) {
            make_current(t);
        }
        return;
    }
}
