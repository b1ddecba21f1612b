/* SPDX-License-Identifier: MIT */
/* Beginning to time: the engine learns where its memory is, and the header what a timed call costs
 * here.  Also the personality of stubs: an exception that passes a timed call ends it. */
#include "counters/timing/timing.h"

#include "base/compiler.h"
#include "counters/rows.h"
#include "counters/thread_row.h"
#include "counters/timing/alloc.h"
#include "counters/timing/call_stack.h"
#include "counters/timing/tick_mode.h"
#include "live/clock.h"

void hfn_count_probe(uint64_t **row, uint64_t calls, uint64_t counted);

#define AT(type, field, bytes) (offsetof(type, field) == (bytes))
#define IN_STATE(field, bytes) AT(hfn_time_state, field, bytes)
#define IN_CELL(field, bytes) AT(hfn_time_cell, field, bytes)
_Static_assert(AT(hfn_time_engine, thread_at, 0) && AT(hfn_time_engine, log_at, 4) &&
                   AT(hfn_time_engine, clock, 8) && HOTFN_CLOCK_TSC == 1 &&
                   IN_STATE(last_tick, 24) && IN_STATE(depth, 36) && IN_STATE(current, 40) &&
                   IN_STATE(suspended_count, 44) && IN_STATE(timed, 48) && IN_STATE(floor, 56) &&
                   IN_STATE(outside, 192) && IN_CELL(total_ticks, 0) && IN_CELL(self_ticks, 8) &&
                   IN_CELL(timed_calls, 16) && IN_CELL(min_ticks, 24) && IN_CELL(max_ticks, 32) &&
                   IN_CELL(open, 44) && IN_CELL(callee_timed, 48) && IN_CELL(within_timed, 56),
               "arch/x86/time_flat.S counts with it");
_Static_assert(HFN_LOG_CAPACITY == 4096 && sizeof(hfn_open_call) == 32 &&
                   AT(hfn_open_call, frame, 0) && AT(hfn_open_call, start, 8) &&
                   AT(hfn_open_call, timed_before, 16) && AT(hfn_open_call, how, 24) &&
                   AT(hfn_time_frame, start, 0) && AT(hfn_time_frame, caller, 8) &&
                   AT(hfn_time_frame, depth, 12) && AT(hfn_time_frame, how, 16) &&
                   AT(hfn_time_frame, slot, 32) && HFN_CALL_SLOT == 0xffffff &&
                   HFN_PROBE_AT == 4096,
               "and with this");

#define IN_NODE(field, bytes) AT(hfn_time_node, field, bytes)
_Static_assert(sizeof(void *) == 4 ||
                   (AT(hfn_time_engine, tick, 16) && AT(hfn_time_engine, session, 24) &&
                    AT(hfn_time_engine, hints_at, 28) && AT(hfn_time_engine, nodes, 32) &&
                    HFN_CLOCK_STOPPED == 0 && IN_STATE(node, 76) && IN_STATE(started, 120) &&
                    IN_NODE(parent, 0) && IN_NODE(slot, 4) && IN_NODE(calls, 16) &&
                    sizeof(hfn_time_node) == 64 && HFN_HINT_BITS == 32 - 19),
               "arch/x86/tick_ends.S counts with it");

#define COUNT_ROUNDS 100u
#define PROBE_CALLS 250u
#define PROBE_ROUNDS 80
#define LOOKING_ROUNDS 40
#define LOOKS_MISS 8
#define COST_UNIT 256.0

/* ---- What a call costs. */

typedef struct probe {
    double all;    /* ticks of a call, with what is around it */
    double inside; /* ticks that the call itself sees         */
} probe;

static probe try_round(uint8_t *row, void (*enter)(void), void (*exit)(void))
{
    hfn_time_state *t = hfn_time_state_of(row);
    hfn_time_cell *c = hfn_time_cell_of(t, 1);
    uint64_t begin = hfn_clock_read(hfn_time.clock), total = c->total_ticks;

    hfn_time_probe(0, enter, exit, PROBE_CALLS);
    return (probe){
        .all = (double)(hfn_clock_read(hfn_time.clock) - begin) / PROBE_CALLS,
        .inside = (double)(c->total_ticks - total) / PROBE_CALLS,
    };
}

static double least(double a, double b)
{
    return a < b ? a : b;
}

/* On a row that nobody reads; the least of some rounds. */
static probe try_calls(uint8_t *row, void (*enter)(void), void (*exit)(void))
{
    probe best = try_round(row, enter, exit);

    for (int i = 1; i < PROBE_ROUNDS; i++) {
        probe one = try_round(row, enter, exit);
        best.all = least(best.all, one.all);
        best.inside = least(best.inside, one.inside);
    }
    return best;
}

/* Of a counted call. */
static double count_cost_ticks(void)
{
    uint64_t counter = 0, *row = &counter;
    double best[2] = { 1e9, 1e9 };

    for (uint32_t i = 0; i < 2 * COUNT_ROUNDS; i++) {
        uint64_t begin = hfn_clock_read(hfn_time.clock);
        double each;

        hfn_count_probe(&row, PROBE_CALLS, i & 1);
        each = (double)(hfn_clock_read(hfn_time.clock) - begin) / PROBE_CALLS;
        best[i & 1] = each < best[i & 1] ? each : best[i & 1];
    }
    return best[1] > best[0] ? best[1] - best[0] : 0;
}

static uint32_t in_units(double ticks)
{
    return ticks > 0 ? (uint32_t)(ticks * COST_UNIT) : 0;
}

static void write_costs(hfn_time_header *h, const probe *timed, double bare)
{
    h->cost_inside_ticks = in_units(least(timed->inside, timed->all));
    h->cost_outside_ticks = in_units(timed->all - bare - timed->inside);
    h->probe_ticks = in_units(bare);
    h->count_cost_ticks = in_units(count_cost_ticks());
}

static int64_t middle_of(int64_t *values, int count)
{
    for (int i = 1; i < count; i++) {
        for (int j = i; j > 0 && values[j] < values[j - 1]; j--) {
            int64_t value = values[j];
            values[j] = values[j - 1];
            values[j - 1] = value;
        }
    }
    return values[count / 2];
}

/* What the two ends of a call see of it where few of them look, as in a run: who looks goes another way than the processor
 * expects, and sees that too.  The middle of some rounds; x 1/256. */
static int64_t seen_by_ends(uint8_t *row, const hfn_timing_calls *calls)
{
    hfn_time_header *h = hfn_time.header;
    int64_t seen[LOOKING_ROUNDS];
    int rounds = 0;

    hfn_time.looks = HFN_LOOKS_OFTEN;
    for (int i = 0; i < LOOKING_ROUNDS; i++) {
        h->seen_ends = h->seen_ticks = 0;
        try_round(row, calls->enter, calls->exit);
        if (h->seen_ends > 0) {
            seen[rounds++] = (int64_t)(h->seen_ticks * 2 * (uint64_t)COST_UNIT / h->seen_ends);
        }
    }
    hfn_time.looks = HFN_LOOKS_NEVER;
    h->seen_ends = h->seen_ticks = 0;
    return rounds > 0 ? middle_of(seen, rounds) : 0;
}

/* What is unseen is of a start that was disturbed if it is far from nothing. */
static void learn_looks(hfn_time_header *h, double all, int64_t seen)
{
    int64_t more = (int64_t)(all * COST_UNIT) - seen, most = seen / LOOKS_MISS;

    h->unseen_ticks = more > most ? most : more < -2 * most ? -2 * most : more;
    h->start_seen_ticks = (uint64_t)seen;
}

/* Not of flat runs, which try calls now and then (own_cost.c), nor of samples, in which all ends do. */
static bool ends_look(void)
{
    return (hfn_time.flags & ~HOTFN_TIMING_TIMES) != 0 &&
           !(hfn_time.flags & HOTFN_TIMING_SAMPLED) && !hfn_time.tick;
}

static void measure_cost(uint64_t row_bytes)
{
    hfn_timing_calls calls = hfn_timing_get_calls();
    uint8_t *row = hfn_rows_map(row_bytes), *before = hfn_thread_row;
    probe timed, bare;

    if (!row) {
        return;
    }
    hfn_thread_row = row;
    timed = try_calls(row, calls.enter, calls.exit);
    bare = try_calls(row, NULL, NULL);
    if (ends_look()) {
        learn_looks(hfn_time.header, timed.all - bare.all, seen_by_ends(row, &calls));
    }
    hfn_thread_row = before;
    hfn_rows_unmap(row, row_bytes);
    write_costs(hfn_time.header, &timed, bare.all);
}

/* ---- Start and stop. */

hfn_timing_calls hfn_timing_get_calls(void)
{
    static const hfn_timing_calls none;
    bool full = (hfn_time.flags & ~HOTFN_TIMING_TIMES) != 0;

    if (!hfn_time_is_on() || !HFN_CAN_TIME) {
        return none;
    }
    if (hfn_time.flags & HOTFN_TIMING_SAMPLED) {
        return (hfn_timing_calls){ hfn_time_enter_sampled_entry, hfn_time_exit_sampled_entry,
                                   (void (*)(void))hfn_time_personality,
                                   hfn_time.thread_at + hfn_time.skips_at };
    }
    if (hfn_time.tick) {
        return (hfn_timing_calls){ hfn_tick_enter_entry, hfn_tick_exit_entry,
                                   (void (*)(void))hfn_time_personality, 0 };
    }
    if (hfn_time.allocs) {
        return (hfn_timing_calls){ hfn_alloc_enter_entry, hfn_alloc_exit_entry,
                                   (void (*)(void))hfn_time_personality, 0 };
    }
    return (hfn_timing_calls){ full ? hfn_time_enter_full_entry : hfn_time_enter_entry,
                               full ? hfn_time_exit_full_entry : hfn_time_exit_entry,
                               (void (*)(void))hfn_time_personality, 0 };
}

/* What stands in it is nobody's. */
static void close_discard_row(uint32_t thread_at)
{
    if (hfn_rows.discard_bytes < thread_at + sizeof(hfn_time_state)) {
        return;
    }
    hfn_rows_empty(hfn_rows.discard, hfn_rows.discard_bytes);
    hfn_time_state_of(hfn_rows.discard)->depth = HFN_DEPTH_CLOSED;
}

void hfn_timing_start(const hfn_time_memory *m)
{
    hfn_time_header *h = m->header;
    hfn_time_engine before = hfn_time;

    hfn_time = (hfn_time_engine){
        .thread_at = m->thread_at,
        .log_at = m->log_at,
        .skips_at = m->skips_at,
        .gaps_at = m->gaps_at,
        .hints_at = m->hints_at,
        .flags = h->flags,
        .clock = h->clock,
        .slow_ticks =
            (h->flags & HOTFN_TIMING_SLOW) && h->slow_capacity ? h->slow_ticks : UINT64_MAX,
        .nodes = m->nodes,
        .histograms = m->histograms,
        .slow = m->slow,
        .events = h->event_capacity ? m->events : NULL,
        .means = m->means,
        .sample_interval = h->sample_mean > 1 ? h->sample_mean : 1,
        .tick = m->tick,
        .session = (before.session + (UINT32_C(1) << HFN_CALL_SESSION_SHIFT)),
        .allocs = (h->flags & HOTFN_TIMING_ALLOC) && m->nodes ? m->allocs : NULL,
        .event_mask = h->event_capacity - 1,
        .looks = HFN_LOOKS_NEVER,
        /* the first has none before it, whatever the clocks of other processors say */
        .begin_ticks = before.header ? hfn_clock_read(h->clock) : 0,
    };
    if (!m->nodes || h->node_capacity == 0) {
        hfn_time.flags &= ~HOTFN_TIMING_TREE;
    }
    if (!m->histograms || h->histogram_capacity == 0) {
        hfn_time.flags &= ~HOTFN_TIMING_HISTOGRAMS;
    }
    hfn_time.header = h;
    close_discard_row(m->thread_at);
    /* A tick clock tells what hooks take, but for a few instructions of the stubs. */
    if (hfn_time.tick && !(h->flags & HOTFN_TIMING_SAMPLED)) {
        h->count_cost_ticks = in_units(count_cost_ticks());
    } else if (h->cost_inside_ticks == 0 && HFN_CAN_TIME) {
        uint64_t slow_ticks = hfn_time.slow_ticks;

        hfn_time.slow_ticks = UINT64_MAX;
        measure_cost(m->thread_at + hfn_time_row_bytes(hfn_rows.slot_capacity));
        hfn_time.slow_ticks = slow_ticks;
    }
    if (ends_look() && h->start_seen_ticks != 0) {
        hfn_time.looks = HFN_LOOKS_SELDOM;
    }
}

uint64_t hfn_timing_stop(void)
{
    uint64_t now;

    if (!hfn_time_is_on()) {
        return 0;
    }
    hfn_timing_stop_clock(&now);
    __atomic_store_n(&hfn_time.begin_ticks, HFN_TIME_OFF, __ATOMIC_SEQ_CST);
    return now;
}

/* What another thread's exit has just begun to end is seen by who waited for it first (process.c). */
void hfn_timing_end_rows(uint64_t now)
{
    const hfn_cell_header *cells = hfn_rows.header;
    uint32_t used = cells ? __atomic_load_n(&cells->cells_used, __ATOMIC_RELAXED) : 0;

    for (uint32_t i = 0; i < used && i < hfn_rows.thread_capacity; i++) {
        const hfn_thread_cell *cell = &hfn_rows.cells[i];

        if (cell->process == hfn_rows.process && cell->pid == hfn_rows.pid) {
            hfn_time_end_row(hfn_rows.rows + (uint64_t)i * hfn_rows.row_bytes, now);
        }
    }
}

uint32_t hfn_timing_stop_clock(uint64_t *at)
{
    uint32_t clock = __atomic_load_n(&hfn_time.clock, __ATOMIC_RELAXED);

    *at = hfn_time_is_on() && clock != HFN_CLOCK_STOPPED ? hfn_time_now() : 0;
    return __atomic_exchange_n(&hfn_time.clock, HFN_CLOCK_STOPPED, __ATOMIC_SEQ_CST);
}

/* Relaxed: one word, that of the first to tell. */
void hfn_timing_record_stop(uint64_t at)
{
    uint64_t none = 0;

    if (hfn_time_is_on() && at) {
        __atomic_compare_exchange_n(&hfn_time.header->clock_stopped_ticks, &none, at, false,
                                    __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    }
}

void hfn_timing_go_on(uint32_t clock)
{
    __atomic_store_n(&hfn_time.clock, clock, __ATOMIC_SEQ_CST);
}

/* ---- Exceptions. */

/* Itanium C++ ABI, 1.6.2 (Personality Routine). */
enum { ACTION_CLEANUP = 2, CONTINUE_UNWIND = 8 };

/* libgcc's unwinder hands us its context; the stack pointer in our frame stands in it.  A static libgcc's
 * _Unwind_GetCFA cannot be called from here, and another unwinder has another context: what stands
 * there is only believed if it is the frame of an open call, one that is being followed or one that
 * waited on another stack and goes on.  One that began in another thread is left open.  Where no address
 * stands, the innermost open call is the one: unwinding goes from the inside out. */
enum { LOOK_BACK = 256, LEAST_ADDRESS = 65536 };

/* The frame of the open call whose stub's stack pointer is `at`: between the two may be arguments. */
static bool stands_over(uint64_t frame, uint64_t at)
{
    return frame - at <= HFN_MAX_BELOW_FRAME;
}

static uint64_t find_in_log(const hfn_time_state *t, const hfn_open_call *log, uint64_t at)
{
    for (uint32_t i = t->depth; i > 0 && i + LOOK_BACK > t->depth; i--) {
        if (i <= HFN_LOG_CAPACITY && stands_over(log[i - 1].frame, at)) {
            return log[i - 1].frame;
        }
    }
    return 0;
}

/* Is it the call's frame that stands there?  Where arguments were copied to, one that was left may have stood. */
static bool stands_there(const hfn_open_call *call)
{
    const hfn_time_frame *f = (const void *)(uintptr_t)call->frame;

    return f->start == call->start && f->how == call->how;
}

static uint64_t find_waiting(hfn_time_state *t, uint64_t at)
{
    const hfn_waiting_call *suspended = hfn_time_suspended_of(t);
    uint64_t found = 0;

    for (uint32_t i = 0; i < t->suspended_count; i++) {
        if (stands_over(suspended[i].call.frame, at) && stands_there(&suspended[i].call) &&
            (found == 0 || suspended[i].call.frame < found)) {
            found = suspended[i].call.frame;
        }
    }
    return found;
}

/* It is on the stack still. */
static void end_waiting_call(uint64_t frame)
{
    hfn_time_frame *f = (hfn_time_frame *)(uintptr_t)frame;

    if (hfn_time.flags & HOTFN_TIMING_SAMPLED) {
        hfn_time_exit_sampled(f);
    } else {
        hfn_time_exit_full(f);
    }
}

static void end_passed_call(const uintptr_t *context)
{
    uint64_t at = context[HFN_UNWIND_CFA_AT_WORD], frame;
    hfn_time_state *t;

    if (!hfn_thread_row || !hfn_time_is_on()) {
        return;
    }
    t = hfn_time_state_of(hfn_thread_row);
    if ((frame = find_in_log(t, hfn_time_log_of(t), at)) != 0) {
        hfn_time_leave(frame);
    } else if ((frame = find_waiting(t, at)) != 0) {
        end_waiting_call(frame);
    } else if (at % sizeof(uintptr_t) != 0 || at < LEAST_ADDRESS || at >> 47 != 0) {
        hfn_time_leave(0);
    }
}

int hfn_time_personality(int version, int actions, uint64_t exception_class, void *exception,
                         void *context)
{
    (void)version, (void)exception_class, (void)exception;
    if (actions & ACTION_CLEANUP) {
        end_passed_call(context);
    }
    return CONTINUE_UNWIND;
}
