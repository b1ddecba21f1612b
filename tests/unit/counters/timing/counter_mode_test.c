/* SPDX-License-Identifier: MIT */
/* Calls timed by the counter that begin and end in every way: in order, by longjmp, by exceptions,
 * on other stacks, deeper than the log, with a clock that goes back.  The time of all places and
 * hooks is the time that passed.  call_interrupts_test.c has calls that a signal interrupts. */
#include "counters/timed_row.h"
#include "counters/timing/counter_mode.h"

#include "../../../property/random.h"
#include "check.h"

#include <inttypes.h>
#include <pthread.h>

enum { STACKS = 3, STACK_BYTES = 1 << 16, MAX_OPEN = 512 };

/* Frames lie in such memory, from its end down, as on a real stack. */
static _Alignas(16) uint8_t stacks[STACKS][STACK_BYTES];

static hfn_time_frame *frame_at(uint32_t stack, uint32_t bytes_down)
{
    return (hfn_time_frame *)(void *)&stacks[stack][STACK_BYTES - bytes_down];
}

#if defined(__x86_64__) && !defined(_WIN32)
/* Like a stub: arch/x86/timed_probes.S precedes the C functions. */
static void call_at(hfn_time_frame *f, void (*entry)(void), void (*in_c)(hfn_time_frame *f))
{
    if ((uintptr_t)f - (uintptr_t)stacks >= sizeof stacks) {
        in_c(f);
        return;
    }
    __asm__ volatile("movq %%rsp, %%rbx\n\tmovq %0, %%rsp\n\tcall *%1\n\tmovq %%rbx, %%rsp"
                     :
                     : "r"(f), "r"(entry)
                     : "rbx", "memory", "cc");
}
#else
static void call_at(hfn_time_frame *f, void (*entry)(void), void (*in_c)(hfn_time_frame *f))
{
    (void)entry;
    in_c(f);
}
#endif

static void enter_in_c(hfn_time_frame *f)
{
    hfn_counter_enter(HFN_PASS(f));
}

static void leave_in_c(hfn_time_frame *f)
{
    hfn_counter_exit(HFN_PASS(f));
}

static void enter(hfn_time_frame *f, uint32_t slot)
{
    memset(f, 0xA5, sizeof *f); /* a stub writes the slot only */
    f->slot = slot;
    call_at(f, hfn_counter_enter_entry, enter_in_c);
}

static void leave(hfn_time_frame *f)
{
    call_at(f, hfn_counter_exit_entry, leave_in_c);
}

static void spend(uint64_t ticks)
{
    uint64_t end = hfn_cpu_ticks() + ticks;

    while (hfn_cpu_ticks() < end) {
        ;
    }
}

static void calls_in_order_are_summed(void)
{
    timed_start(0);
    hfn_time_state *t = timed_use(0);
    hfn_time_frame *outer = frame_at(0, 64), *inner = frame_at(0, 256);

    for (int i = 0; i < 10; i++) {
        enter(outer, 1);
        spend(1000);
        for (int k = 0; k < 3; k++) {
            enter(inner, 2);
            spend(500);
            leave(inner);
        }
        leave(outer);
        spend(2000); /* outside */
    }
    CHECK_EQ_U64(timed_calls_of(1), 10);
    CHECK_EQ_U64(timed_calls_of(2), 30);
    CHECK(timed_ticks_of(2) >= 30 * 500 && timed_ticks_of(1) >= 10 * 1000);
    CHECK(timed_cell(t, 2)->max_ticks >= 500 && timed_cell(t, 1)->max_ticks >= 2500);
    CHECK(timed.nodes[t->root - 1].total_ticks >= 9 * 2000);
    CHECK_EQ_U64(t->hook_ticks, 0); /* the cost is 0 in this test */
    timed_is_complete(t);
    CHECK_EQ_U64(t->depth + t->started, 0);
    CHECK_EQ_U64(t->node, t->root);
    timed_forget();
}

/* Calls that cost 30 ticks inside and 50 outside: each end of a call subtracts its part. */
static void the_cost_of_hooks_is_subtracted_once_for_each_end(void)
{
    timed.header.cost_inside_ticks = 30 * 256;
    timed.header.cost_outside_ticks = 50 * 256;
    timed_start(HOTFN_TIMING_HISTOGRAMS);
    hfn_time_state *t = timed_use(0);
    hfn_time_frame *outer = frame_at(0, 64), *inner = frame_at(0, 256);

    enter(outer, 1);
    for (int i = 0; i < 100; i++) {
        enter(inner, 2);
        leave(inner);
    }
    leave(outer);
    CHECK_EQ_U64(t->hook_ticks, 101 * (30 + 50));
    timed_is_complete(t); /* also if the time of a place is negative */
    CHECK(timed_cell(t, 1)->max_ticks <= t->last_tick - t->first_tick);
    timed_forget();
}

static void calls_left_by_longjmp_are_removed(void)
{
    timed_start(0);
    hfn_time_state *t = timed_use(0);

    for (int round = 0; round < 50; round++) {
        enter(frame_at(0, 64), 1);
        for (uint32_t i = 2; i <= 4; i++) {
            enter(frame_at(0, i * 128), i);
        }
        enter(frame_at(0, 200), 5); /* after the jump, by 1 */
        leave(frame_at(0, 200));
        leave(frame_at(0, 64));
    }
    for (uint32_t slot = 1; slot <= 5; slot++) {
        CHECK_EQ_U64(timed_calls_of(slot), 50);
    }
    CHECK_EQ_U64(timed.header.abandoned_exits, 150);
    CHECK_EQ_U64(t->depth, 0);
    timed_is_complete(t);
    CHECK(timed.header.nodes_used <= 64); /* the same places in each round */
    timed_forget();
}

static void exceptions_end_the_calls_that_they_pass(void)
{
    timed_start(HOTFN_TIMING_HISTOGRAMS);
    hfn_time_state *t = timed_use(0);

    for (int round = 0; round < 50; round++) {
        enter(frame_at(0, 64), 1);
        for (uint32_t i = 2; i <= 4; i++) {
            enter(frame_at(0, i * 128), i);
        }
        enter(frame_at(0, 1024), 7); /* the unwinder, timed itself */
        hfn_time_leave((uint64_t)(uintptr_t)frame_at(0, 512));
        hfn_time_leave((uint64_t)(uintptr_t)frame_at(0, 384));
        leave(frame_at(0, 1024));
        hfn_time_leave(0); /* an unwinder that does not report the frame: the innermost */
        CHECK_EQ_U64(t->depth, 1);
        leave(frame_at(0, 64));
    }
    CHECK(timed_cell(t, 4)->max_ticks > 0 && timed_cell(t, 3)->max_ticks > 0);
    CHECK_EQ_U64(timed.header.abandoned_exits, 0);
    CHECK_EQ_U64(t->depth, 0);
    timed_is_complete(t);
    timed_forget();
}

static void calls_on_switched_stacks_keep_their_places(void)
{
    timed_start(0);
    hfn_time_state *t = timed_use(0);

    for (int round = 0; round < 40; round++) {
        for (uint32_t s = 0; s < STACKS; s++) { /* each begins two calls, then another one runs */
            enter(frame_at(s, 64), s);
            enter(frame_at(s, 512), 8 + s);
        }
        for (uint32_t s = 0; s < STACKS; s++) { /* the first stack's calls end first */
            uint64_t before = timed_ticks_of(8 + s);
            spend(300);
            leave(frame_at(s, 512));
            CHECK(timed_ticks_of(8 + s) >= before + 300);
            leave(frame_at(s, 64));
        }
    }
    for (uint32_t s = 0; s < STACKS; s++) {
        CHECK_EQ_U64(timed_calls_of(s), 40);
        CHECK_EQ_U64(timed_calls_of(8 + s), 40);
    }
    timed_is_complete(t);
    CHECK_EQ_U64(t->depth, 0);
    timed_forget();
}

static void calls_deeper_than_the_log_are_timed(void)
{
    enum { DEEP = 3 * HFN_LOG_CAPACITY };
    static hfn_time_frame frames[DEEP];

    timed_start(0);
    hfn_time_state *t = timed_use(0);
    for (uint32_t i = DEEP; i-- > 0;) {
        enter(&frames[i], i % 3);
    }
    CHECK_EQ_U64(t->depth, DEEP);
    spend(1000);
    for (uint32_t i = 0; i < DEEP; i++) {
        leave(&frames[i]);
    }
    CHECK_EQ_U64(t->depth, 0);
    for (uint32_t slot = 0; slot < 3; slot++) {
        CHECK_EQ_U64(timed_calls_of(slot), DEEP / 3);
        CHECK(timed_cell(t, slot)->max_ticks >= 1000);
    }
    timed_is_complete(t);
    CHECK(timed.header.nodes_merged > 0 && timed.header.nodes_used < 3 * 1100);
    timed_forget();
}

static void a_stopped_clock_is_not_read(void)
{
    timed_start(0);
    hfn_time_state *t = timed_use(0);
    hfn_time_frame *outer = frame_at(0, 64), *later = frame_at(0, 4096);

    enter(outer, 1);
    uint64_t last = t->last_tick, at = 0;
    uint32_t clock = hfn_timing_stop_clock(&at);
    enter(later, 2);
    leave(later);
    leave(outer);
    CHECK_EQ_U64(t->last_tick, last);
    CHECK_EQ_U64(timed_calls_of(2), 0);
    CHECK_EQ_U64(timed_ticks_of(1) + t->depth, 0);
    hfn_timing_record_stop(at), hfn_timing_record_stop(at + 1); /* the first one is kept */
    CHECK(at >= last && hfn_time.header->clock_stopped_ticks == at);
    hfn_timing_restart_clock(clock);
    enter(later, 2);
    leave(later);
    CHECK(t->last_tick > last);
    CHECK_EQ_U64(timed_calls_of(2), 1);
    timed_is_complete(t);
    timed_forget();
}

static void calls_of_an_earlier_session_are_ignored(void)
{
    timed_start(0);
    hfn_time_state *t = timed_use(0);
    hfn_time_frame *old = frame_at(0, 64), *outer = frame_at(1, 64);

    enter(old, 1);
    spend(1000);
    hfn_time_end_row(hfn_thread_row, hfn_timing_stop(), 0);
    CHECK(timed_ticks_of(1) >= 1000 && timed_cell(t, 1)->max_ticks >= 1000);
    enter(outer, 2); /* nothing is timed */
    leave(outer);
    CHECK_EQ_U64(timed_calls_of(2) + t->depth, 0);
    timed_start(0);
    timed_use(0);
    enter(outer, 2);
    hfn_time_state before = *t;
    leave(old);
    CHECK_MEM(t, &before, sizeof before);
    leave(outer);
    CHECK_EQ_U64(timed_calls_of(2), 1);
    timed_forget();
}

static void no_call_begins_in_the_discard_row(void)
{
    timed_start(0);
    hfn_time_state *t = timed_use(0);
    hfn_time_frame *f = frame_at(0, 64);

    t->depth = HFN_DEPTH_CLOSED;
    enter(f, 1);
    CHECK(f->call_word & HFN_CALL_UNTIMED);
    leave(f);
    CHECK_EQ_U64(t->depth, HFN_DEPTH_CLOSED);
    CHECK_EQ_U64(timed_calls_of(1), 0);
    timed_forget();
}

static void a_clock_that_turns_back_is_counted_and_harmless(void)
{
    for (uint32_t flags = 0; flags <= HOTFN_TIMING_HISTOGRAMS; flags += HOTFN_TIMING_HISTOGRAMS) {
        timed_start(flags);
        hfn_time_state *t = timed_use(0);
        hfn_time_frame *f = frame_at(0, 64);

        t->last_tick += UINT64_C(1) << 50; /* another processor's clock is far ahead */
        enter(f, 1);
        leave(f);
        t->last_tick += UINT64_C(1) << 50;
        enter(f, 1);
        t->last_tick += UINT64_C(1) << 50;
        leave(f);
        CHECK_EQ_U64(timed.header.clock_went_back, 3);
        CHECK_EQ_U64(timed_calls_of(1), 2);
        CHECK(timed_ticks_of(1) < UINT64_C(1) << 40);
        CHECK(timed_cell(t, 1)->max_ticks < UINT64_C(1) << 40);
        CHECK_EQ_U64(t->depth, 0);
        timed_forget();
    }
}

static void a_full_pool_is_counted_and_keeps_the_sums(void)
{
    timed.header.node_capacity = 64;
    timed.header.histogram_capacity = 2;
    timed_start(HOTFN_TIMING_HISTOGRAMS);
    hfn_time_state *t = timed_use(0);
    uint64_t calls = 0;

    for (uint32_t a = 0; a < 12; a++) {
        enter(frame_at(0, 64), a);
        for (uint32_t b = 0; b < 12; b++) {
            enter(frame_at(0, 128), b);
            leave(frame_at(0, 128));
        }
        leave(frame_at(0, 64));
    }
    for (uint32_t slot = 0; slot < 12; slot++) {
        calls += timed_calls_of(slot);
    }
    CHECK(calls > 12 && calls < 12 * 13); /* the others have no place, not even below the root */
    CHECK(timed.header.nodes_merged > 0);
    CHECK_EQ_U64(timed_cell(t, 11)->histogram, UINT32_MAX);
    timed_is_complete(t);
    CHECK_EQ_U64(timed.nodes[64].flags, 0); /* behind the capacity */
    CHECK_EQ_U64(timed.histograms[2][0], 0);
    timed_forget();
}

/* hotfn/lowlevel/timing.h: up to 63 ticks a bucket each, then 32 for each power of two. */
static uint32_t bucket_of(uint64_t ticks)
{
    uint32_t bucket = 0;
    uint64_t width = 1, begin = 0;

    while (begin + width <= ticks) {
        begin += width;
        bucket++;
        width = bucket >= 64 && bucket % 32 == 0 ? 2 * width : width;
    }
    return bucket;
}

static void each_call_is_in_the_bucket_of_its_length(void)
{
    timed_start(HOTFN_TIMING_HISTOGRAMS);
    hfn_time_state *t = timed_use(0);

    for (uint32_t slot = 0; slot < TIMED_SLOTS; slot++) { /* one call each */
        enter(frame_at(0, 64), slot);
        spend(UINT64_C(1) << slot);
        leave(frame_at(0, 64));
        const hfn_time_cell *c = timed_cell(t, slot);
        uint64_t calls = 0;
        if (!CHECK(c->histogram > 0 && c->histogram <= TIMED_HISTOGRAMS)) {
            continue;
        }
        for (uint32_t i = 0; i < HOTFN_HISTOGRAM_BUCKETS; i++) {
            calls += timed.histograms[c->histogram - 1][i];
        }
        CHECK_EQ_U64(calls, 1);
        CHECK_EQ_U64(timed.histograms[c->histogram - 1][bucket_of(c->max_ticks)], 1);
        CHECK_EQ_U64(c->max_ticks, timed_ticks_of(slot));
    }
    timed_forget();
}

static void each_call_leaves_two_events(void)
{
    timed_start(HOTFN_TIMING_EVENTS);
    hfn_time_state *first = timed_use(0);
    hfn_time_state *t = timed_use(1);

    for (uint32_t i = 0; i < TIMED_EVENTS + 3; i++) { /* more than the ring holds */
        enter(frame_at(0, 64), i % TIMED_SLOTS);
        leave(frame_at(0, 64));
    }
    CHECK_EQ_U64(first->events, 0);
    CHECK_EQ_U64(t->events, 2 * (TIMED_EVENTS + 3));
    for (uint32_t i = 0; i < TIMED_EVENTS; i++) {
        uint64_t number = t->events - TIMED_EVENTS + i;
        const hfn_time_event *e = &timed.events[1][number % TIMED_EVENTS];
        CHECK_EQ_U64(e->slot, number / 2 % TIMED_SLOTS);
        CHECK_EQ_U64(e->kind, 1 + number % 2);
        CHECK(i == 0 || e->ticks >= timed.events[1][(number - 1) % TIMED_EVENTS].ticks);
    }
    CHECK_EQ_U64(timed.events[0][0].kind + timed.events[2][0].kind, 0);
    timed_forget();
}

static void the_ring_of_slow_calls_keeps_the_latest(void)
{
    timed.header.slow_capacity = 4;
    timed.header.slow_ticks = 2000;
    timed_start(HOTFN_TIMING_SLOW);
    hfn_time_state *t = timed_use(0);

    for (uint32_t i = 0; i < 10; i++) {
        enter(frame_at(0, 64), i);
        spend(2500);
        leave(frame_at(0, 64));
    }
    CHECK(timed.header.slow_used >= 10);
    for (uint32_t i = 0; i < 4; i++) {
        CHECK(timed.slow[i].sequence + 4 > timed.header.slow_used && timed.slow[i].ticks >= 2000);
    }
    CHECK_EQ_U64(timed.slow[4].sequence, 0);
    CHECK_EQ_U64(t->depth, 0);
    timed_forget();
}

/* The first events of a forked child end calls that began in the parent's row. */
static void a_childs_calls_are_timed_from_the_fork_on(void)
{
    timed_start(0);
    timed_use(0);
    enter(frame_at(0, 64), 1);
    enter(frame_at(0, 128), 2);
    hfn_time_state *child = timed_use(1);
    spend(500);
    leave(frame_at(0, 128));
    leave(frame_at(0, 64));
    timed_is_complete(child);
    CHECK(timed_ticks_of(2) >= 500);
    CHECK_EQ_U64(timed_cell(child, 1)->max_ticks, 0);
    CHECK_EQ_U64(child->depth, 0);
    timed_forget();
}

static void rows_are_added(void)
{
    timed_start(0);
    hfn_time_state *from = timed_use(1), *to = timed_use(0);

    hfn_time_cell_of(to, 0)->max_ticks = 80;
    hfn_time_cell_of(from, 0)->max_ticks = 100;
    hfn_time_cell_of(to, 1)->max_ticks = 100;
    hfn_time_cell_of(from, 1)->max_ticks = 80;
    hfn_time_add_row(timed.rows[0].counts, timed.rows[1].counts, 2);
    CHECK_EQ_U64(timed_cell(to, 0)->max_ticks, 100);
    CHECK_EQ_U64(timed_cell(to, 1)->max_ticks, 100);
    timed_forget();
}

/* ---- Any calls in any order. */

typedef struct model {
    hfn_time_frame *open[STACKS][MAX_OPEN];
    uint32_t open_count[STACKS], down[STACKS][MAX_OPEN];
    uint64_t begun[TIMED_SLOTS];
    uint32_t on; /* the current stack */
} model;

static void model_enter(model *m, random_source *r)
{
    uint32_t s = m->on, n = m->open_count[s], slot = random_below(r, TIMED_SLOTS);
    uint32_t down = (n ? m->down[s][n - 1] : 0) + 48 + 8 * random_below(r, 40);

    if (n == MAX_OPEN || down > STACK_BYTES - 256) {
        return;
    }
    m->open[s][n] = frame_at(s, down);
    m->down[s][n] = down;
    m->open_count[s]++;
    m->begun[slot]++;
    m->open[s][n]->slot = slot;
    enter_in_c(m->open[s][n]);
}

static void model_leave(model *m)
{
    uint32_t s = m->on, n = m->open_count[s];

    if (n > 0) {
        m->open_count[s]--;
        leave_in_c(m->open[s][n - 1]);
    }
}

static void model_throw(model *m, random_source *r)
{
    uint32_t s = m->on, passed = random_below(r, 4);

    for (; passed > 0 && m->open_count[s] > 0; passed--) {
        const hfn_time_frame *f = m->open[s][--m->open_count[s]];
        hfn_time_leave((uint64_t)(uintptr_t)f);
    }
}

static void model_step(model *m, random_source *r)
{
    uint32_t what = random_below(r, 32), left;

    if (what < 14) {
        model_enter(m, r);
    } else if (what < 28) {
        model_leave(m);
    } else if (what < 29) {
        model_throw(m, r);
    } else if (what < 30) {
        m->on = random_below(r, STACKS);
    } else if (what < 31) {
        left = random_below(r, 6);
        m->open_count[m->on] -= left < m->open_count[m->on] ? left : m->open_count[m->on];
    }
}

static bool check_round(uint64_t seed)
{
    random_source r = random_seed(seed);
    static model m;
    uint64_t begin = hfn_cpu_ticks();
    bool fine = true;

    memset(&m, 0, sizeof m);
    timed_start(HOTFN_TIMING_HISTOGRAMS | HOTFN_TIMING_EVENTS);
    hfn_time_state *t = timed_use(0);
    for (int i = 0; i < 3000; i++) {
        model_step(&m, &r);
    }
    for (m.on = 0; m.on < STACKS; m.on++) {
        while (m.open_count[m.on] > 0) {
            model_leave(&m);
        }
    }
    uint64_t passed = hfn_cpu_ticks() - begin;
    fine &= timed_is_complete(t);
    for (uint32_t i = 0; i < TIMED_SLOTS; i++) {
        fine &= CHECK_EQ_U64(timed_calls_of(i), m.begun[i]);
        fine &= CHECK(timed_cell(t, i)->max_ticks <= passed);
    }
    fine &= CHECK_EQ_U64(timed.header.clock_went_back, 0);
    timed_forget();
    return fine;
}

static void any_calls_in_any_order_keep_the_sums(void)
{
    for (uint64_t seed = 1; seed <= 200; seed++) {
        if (!check_round(seed)) {
            printf("#   with seed %" PRIu64 "\n", seed);
            return;
        }
    }
}

/* ---- Threads share the pools. */

static void *run_thread(void *number)
{
    uint32_t thread = (uint32_t)(uintptr_t)number;
    hfn_time_frame frames[8];

    timed_use(thread);
    for (uint32_t round = 0; round < 400; round++) {
        for (uint32_t i = 8; i-- > 0;) {
            enter(&frames[i], (round * i + thread) % TIMED_SLOTS);
        }
        for (uint32_t i = 0; i < 8; i++) {
            leave(&frames[i]);
        }
    }
    hfn_thread_row = NULL;
    return NULL;
}

static void threads_share_the_pools(void)
{
    pthread_t threads[TIMED_THREADS];
    uint64_t calls = 0, in_histograms = 0;

    timed_start(HOTFN_TIMING_HISTOGRAMS | HOTFN_TIMING_EVENTS);
    for (uintptr_t i = 0; i < TIMED_THREADS; i++) {
        CHECK_EQ_I64(pthread_create(&threads[i], NULL, run_thread, (void *)i), 0);
    }
    for (uint32_t i = 0; i < TIMED_THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    for (uint32_t slot = 0; slot < TIMED_SLOTS; slot++) {
        calls += timed_calls_of(slot);
    }
    for (uint32_t i = 0; i < TIMED_HISTOGRAMS; i++) {
        for (uint32_t k = 0; k < HOTFN_HISTOGRAM_BUCKETS; k++) {
            in_histograms += timed.histograms[i][k];
        }
    }
    CHECK_EQ_U64(calls, TIMED_THREADS * 400 * 8);
    CHECK(in_histograms > 0 && in_histograms <= calls);
    CHECK(timed.header.histograms_used > TIMED_HISTOGRAMS); /* more were wanted */
    timed_forget();
}

static const check_test tests[] = {
    CHECK_TEST(calls_in_order_are_summed),
    CHECK_TEST(the_cost_of_hooks_is_subtracted_once_for_each_end),
    CHECK_TEST(calls_left_by_longjmp_are_removed),
    CHECK_TEST(exceptions_end_the_calls_that_they_pass),
    CHECK_TEST(calls_on_switched_stacks_keep_their_places),
    CHECK_TEST(calls_deeper_than_the_log_are_timed),
    CHECK_TEST(a_stopped_clock_is_not_read),
    CHECK_TEST(calls_of_an_earlier_session_are_ignored),
    CHECK_TEST(no_call_begins_in_the_discard_row),
    CHECK_TEST(a_clock_that_turns_back_is_counted_and_harmless),
    CHECK_TEST(a_full_pool_is_counted_and_keeps_the_sums),
    CHECK_TEST(each_call_is_in_the_bucket_of_its_length),
    CHECK_TEST(each_call_leaves_two_events),
    CHECK_TEST(the_ring_of_slow_calls_keeps_the_latest),
    CHECK_TEST(a_childs_calls_are_timed_from_the_fork_on),
    CHECK_TEST(rows_are_added),
    CHECK_TEST(any_calls_in_any_order_keep_the_sums),
    CHECK_TEST(threads_share_the_pools),
};
CHECK_MAIN(tests)
