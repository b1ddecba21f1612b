/* SPDX-License-Identifier: MIT */
/*
 * HOT PATH: the two ends of a timed call by a tick clock.  General registers only, no libc, no lock.
 *
 * The clock is a word that another thread advances every few microseconds, so most calls begin and
 * end between two ticks.  Such a call costs two loads of the word, which find it as it was, and the
 * count of its place in the call tree.  A tick is charged to the place that is current when a hook
 * first sees it; ticks come at random, so over many calls each place gets its share, however short
 * its calls are.  A tick that comes while a hook runs is charged to nobody.
 *
 *     enter: charge new ticks to the caller's place; make the callee's place current;
 *            new ticks since are the hook's
 *     exit:  charge new ticks to the call's place; make its caller's place current;
 *            new ticks since are the hook's
 *
 * The tree holds all times: a reader sums it up (records/tick_times.c).
 *
 * The log holds the open calls of the thread, outermost first.  Its first `started` calls have a
 * start: the thread's own time at the last tick before the call began.  The others began after the
 * latest tick, so no time has passed in them.
 *
 * A call in the log whose frame lies below a new one was left by longjmp, or waits on another stack.
 * It is removed from the log.  If it ends after all, its own frame says which place is current
 * again.
 *
 * A signal may strike at any instruction, and its handler may make timed calls: each store leaves a
 * state that an enter and an exit in between restore.
 */
#include "counters/timing/tick_mode.h"

#include "counters/thread_row.h"

#define BARRIER() __asm__ volatile("" ::: "memory")
#define ALWAYS_INLINE inline __attribute__((always_inline))
#define NOINLINE __attribute__((noinline))

/* As the frame of a call in the log: an exception has passed the call. */
#define LEFT_FRAME 1u
#define SESSION_BITS (UINT32_C(15) << HFN_CALL_SESSION_SHIFT)

static ALWAYS_INLINE bool is_new_tick(const hfn_time_state *t)
{
    return hfn_load_tick(hfn_time.tick) != hfn_load_tick(&t->last_tick);
}

/* The same, but the processor loads the clock only when the value is known.  Otherwise it would often
 * load it long before the code that computes the value is finished. */
static ALWAYS_INLINE bool is_new_tick_behind(const hfn_time_state *t, uintptr_t value)
{
    const uint64_t *tick = (const uint64_t *)((uintptr_t)hfn_time.tick + hfn_cpu_zero_of(value));

    return hfn_load_tick(tick) != hfn_load_tick(&t->last_tick);
}

/* The thread's own time: the ticks that came while the program ran. */
static ALWAYS_INLINE uint64_t own_time(const hfn_time_state *t)
{
    return hfn_load_tick(&t->last_tick) - t->hook_ticks;
}

static ALWAYS_INLINE hfn_time_node *node_at(uint32_t node)
{
    return &hfn_time.nodes[node - 1];
}

/* ---- Ticks. */

/* Returns the ticks since the latest ones that were taken, and takes them.  If a handler strikes here
 * and takes them, none are left. */
static uint64_t take_ticks(hfn_time_state *t)
{
    uint64_t last = hfn_load_tick(&t->last_tick), now = hfn_load_tick(hfn_time.tick);

    if ((int64_t)(now - last) <= 0 ||
        !__atomic_compare_exchange_n(&t->last_tick, &last, now, false, __ATOMIC_RELAXED,
                                     __ATOMIC_RELAXED)) {
        return 0;
    }
    return now - last;
}

/* All open calls have a start from now on. */
static void start_calls(hfn_time_state *t, uint64_t time)
{
    hfn_open_call *log = hfn_time_log_of(t);
    uint32_t depth = t->depth < HFN_LOG_CAPACITY ? t->depth : HFN_LOG_CAPACITY;

    for (uint32_t i = t->started; i < depth; i++) {
        log[i].start = time;
    }
    t->started = depth > t->started ? depth : t->started;
}

static void charge(hfn_time_state *t, uint32_t node)
{
    uint64_t before = own_time(t), ticks = take_ticks(t);

    if (ticks == 0) {
        return;
    }
    start_calls(t, before);
    if (node != 0) {
        hfn_add_tick(&node_at(node)->total_ticks, ticks);
    }
}

HFN_KEEPS_REGISTERS void hfn_tick_charge_call(hfn_time_state *t)
{
    charge(t, t->node);
}

HFN_KEEPS_REGISTERS void hfn_tick_charge_hook(hfn_time_state *t)
{
    t->hook_ticks += take_ticks(t);
}

/* ---- The log. */

/* A free place of the log has the frame 0. */
static ALWAYS_INLINE bool was_left(const hfn_open_call *call, uint64_t frame)
{
    return call->frame - 1 < frame;
}

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
    t->started = t->started < depth ? t->started : depth;
}

/* Before a call begins at `frame`: those that were left are removed, and the innermost of the others
 * is current. */
static NOINLINE HFN_KEEPS_REGISTERS void remove_left_calls(hfn_time_state *t, uint64_t frame)
{
    const hfn_open_call *log = hfn_time_log_of(t);
    uint32_t depth = t->depth;

    while (depth > 0 && depth <= HFN_LOG_CAPACITY && was_left(&log[depth - 1], frame)) {
        depth--;
    }
    if (depth < t->depth) {
        cut_log(t, depth);
        t->node = depth > 0 ? hfn_call_node(log[depth - 1].how) : t->root;
    }
}

/* The place in this thread's tree for a node that may be of another thread (a coroutine moved) or of
 * the parent process. */
static uint32_t own_node(hfn_time_state *t, uint32_t node)
{
    if (node == 0 || node_at(node)->thread == t->thread - 1) {
        return node;
    }
    if (t->thread == 0 || t->root == 0 || node_at(node)->slot == UINT32_MAX) {
        return t->root;
    }
    return hfn_tree_hint_child(HFN_PASS(t), HFN_PASS(t->root), HFN_PASS(node_at(node)->slot));
}

/* A call ends that is not the innermost one of the log. */
static NOINLINE HFN_KEEPS_REGISTERS void end_out_of_order(hfn_time_state *t,
                                                          const hfn_time_frame *f)
{
    hfn_open_call *log = hfn_time_log_of(t);
    bool is_logged = f->depth < HFN_LOG_CAPACITY;

    charge(t, own_node(t, hfn_call_node(f->how))); /* what began since is over, or waits */
    if (f->depth < t->depth && (!is_logged || log[f->depth].frame == (uint64_t)(uintptr_t)f)) {
        if (is_logged) {
            log[f->depth].frame = LEFT_FRAME; /* it was not abandoned */
        }
        cut_log(t, f->depth);
    }
    t->node = own_node(t, f->caller);
}

/* ---- Long calls: a tick came in them. */

static NOINLINE HFN_KEEPS_REGISTERS void end_long_call(hfn_time_state *t, uint64_t how,
                                                       uint64_t start)
{
    hfn_time_cell *c = hfn_time_cell_of(t, hfn_call_slot(how) + 1);
    uint64_t passed = own_time(t) - start, index;

    if ((int64_t)passed <= 0) {
        return;
    }
    if (passed > c->max_ticks) {
        c->max_ticks = passed;
    }
    if ((hfn_time.flags & HOTFN_TIMING_HISTOGRAMS) &&
        hfn_tree_find_bucket(HFN_PASS(c), HFN_PASS(passed), HFN_PASS(&index))) {
        hfn_time.histograms[index]++;
    }
    if (HFN_UNLIKELY(passed >= hfn_time.slow_ticks)) {
        hfn_tree_keep_slow(HFN_PASS(t), HFN_PASS(hfn_call_slot(how)), HFN_PASS(hfn_call_node(how)),
                           HFN_PASS(hfn_load_tick(&t->last_tick) - passed), HFN_PASS(passed));
    }
}

/* ---- Enter and exit. */

/* Deeper than the tree, or where the tree is full, calls are kept below its root, so that functions
 * still have all of their times. */
static ALWAYS_INLINE uint32_t find_place(hfn_time_state *t, uint32_t parent, uint32_t slot)
{
    uint32_t child = *hfn_tree_hint(t, parent, slot) + 1;
    const hfn_time_node *n = node_at(child);

    if (HFN_LIKELY(n->slot == slot && n->parent + 1 == parent)) {
        return child;
    }
    child = hfn_tree_hint_child(HFN_PASS(t), HFN_PASS(parent), HFN_PASS(slot));
    if (HFN_UNLIKELY(child == 0)) {
        child = hfn_tree_hint_child(HFN_PASS(t), HFN_PASS(t->root), HFN_PASS(slot));
    }
    return child;
}

HFN_KEEPS_REGISTERS void hfn_tick_enter(hfn_time_frame *f, uintptr_t first_argument)
{
    uint8_t *row = hfn_thread_row;
    uint32_t slot = (uint32_t)f->slot, depth, parent, child = 0;
    uint64_t how, frame = (uint64_t)(uintptr_t)f;
    hfn_open_call *log;
    hfn_time_state *t;

    if (HFN_UNLIKELY(!row || hfn_time.clock == HFN_CLOCK_STOPPED ||
                     hfn_time_state_of(row)->depth >= HFN_DEPTH_CLOSED)) {
        f->how = HFN_CALL_UNTIMED;
        return;
    }
    t = hfn_time_state_of(row);
    if (HFN_UNLIKELY(is_new_tick_behind(t, first_argument))) {
        hfn_tick_charge_call(HFN_PASS(t));
    }
    log = hfn_time_log_of(t);
    if (HFN_LIKELY(t->depth - 1 < HFN_LOG_CAPACITY) &&
        HFN_UNLIKELY(was_left(&log[t->depth - 1], frame))) {
        remove_left_calls(HFN_PASS(t), HFN_PASS(frame));
    }
    parent = t->node;
    if (HFN_UNLIKELY(parent == 0) && t->thread != 0) {
        parent = hfn_tree_root(HFN_PASS(t));
    }
    if (HFN_LIKELY(parent != 0)) {
        child = find_place(t, parent, slot);
    }
    if (HFN_UNLIKELY(child == 0)) {
        f->how = HFN_CALL_UNTIMED;
        return;
    }
    node_at(child)->calls++;
    depth = t->depth;
    how = slot | hfn_time.session | (uint64_t)child << HFN_CALL_NODE_SHIFT;
    f->caller = parent;
    f->depth = depth;
    f->how = how;
    t->depth = depth + 1; /* until then a handler's calls may use the place */
    if (HFN_LIKELY(depth < HFN_LOG_CAPACITY)) {
        BARRIER();
        log[depth].frame = frame;
        log[depth].how = how;
    }
    t->node = child;
    if (HFN_UNLIKELY(is_new_tick(t))) {
        hfn_tick_charge_hook(HFN_PASS(t));
    }
}

HFN_KEEPS_REGISTERS void hfn_tick_exit(hfn_time_frame *f, uintptr_t result)
{
    uint8_t *row = hfn_thread_row;
    uint32_t depth = f->depth;
    hfn_open_call *e;
    hfn_time_state *t;

    if (HFN_UNLIKELY(!row || (f->how & HFN_CALL_UNTIMED) || hfn_time.begin_ticks == HFN_TIME_OFF ||
                     ((uint32_t)f->how & SESSION_BITS) != hfn_time.session)) {
        return;
    }
    t = hfn_time_state_of(row);
    e = &hfn_time_log_of(t)[depth];
    if (HFN_LIKELY(depth < HFN_LOG_CAPACITY && t->depth == depth + 1 &&
                   e->frame == (uint64_t)(uintptr_t)f)) {
        if (HFN_UNLIKELY(is_new_tick_behind(t, result))) {
            hfn_tick_charge_call(HFN_PASS(t));
        }
        uint64_t start = e->start;
        bool is_long = t->started > depth;
        e->frame = 0;
        BARRIER(); /* from then on the place is a handler's */
        t->depth = depth;
        t->node = f->caller;
        if (HFN_UNLIKELY(is_long)) {
            t->started = depth;
            end_long_call(HFN_PASS(t), HFN_PASS(f->how), HFN_PASS(start));
        }
    } else {
        end_out_of_order(HFN_PASS(t), HFN_PASS(f));
    }
    if (HFN_UNLIKELY(is_new_tick(t))) {
        hfn_tick_charge_hook(HFN_PASS(t));
    }
}

/* ---- Exceptions and ends. */

/* The unwinder may run in timed calls of its own, further in: they stay in the log, and current. */
void hfn_tick_leave(uint64_t frame)
{
    hfn_time_state *t = hfn_time_state_of(hfn_thread_row);
    hfn_open_call *log = hfn_time_log_of(t);
    uint32_t i = t->depth < HFN_LOG_CAPACITY ? t->depth : HFN_LOG_CAPACITY;

    charge(t, t->node);
    while (i > 0 && (frame == 0 ? log[i - 1].frame <= LEFT_FRAME : log[i - 1].frame != frame)) {
        i--;
    }
    if (i == 0) {
        return;
    }
    log[i - 1].frame = LEFT_FRAME;
    if (i == t->depth) {
        const hfn_time_node *n = node_at(hfn_call_node(log[i - 1].how));
        t->node = n->parent + 1;
        cut_log(t, i - 1);
    }
}

void hfn_tick_end_row(hfn_time_state *t)
{
    hfn_open_call *log = hfn_time_log_of(t);
    uint32_t depth = t->depth < HFN_LOG_CAPACITY ? t->depth : HFN_LOG_CAPACITY;

    charge(t, depth > 0 ? t->node : 0);
    for (uint32_t i = depth; i-- > 0;) {
        if (log[i].frame > LEFT_FRAME && i < t->started) {
            end_long_call(HFN_PASS(t), HFN_PASS(log[i].how), HFN_PASS(log[i].start));
        }
        log[i].frame = 0;
    }
    t->depth = t->started = 0;
    t->node = t->root;
}
