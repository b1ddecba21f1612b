/* SPDX-License-Identifier: MIT */
/* Timed calls by a tick clock, which the test itself advances: all times are exact. */
#include "counters/timed_row.h"
#include "counters/timing/tick_mode.h"
#include "counters/timing/waiting.h"
#include "counters/trap_flag.h"

#include "check.h"

#include <signal.h>

static volatile uint64_t tick;

static hfn_time_state *start(uint32_t flags)
{
    tick = 1000000;
    timed_start_by(flags, (const uint64_t *)&tick);
    return timed_use(0);
}

static void enter(hfn_time_frame *f, uint32_t slot)
{
    memset(f, 0xA5, sizeof *f); /* a stub writes the slot only */
    f->slot = slot;
    hfn_tick_enter(HFN_PASS(f), HFN_PASS((uintptr_t)0));
}

static void leave(hfn_time_frame *f)
{
    hfn_tick_exit(HFN_PASS(f), HFN_PASS((uintptr_t)0));
}

/* The place of the tree below `parent` (0: the root) for the slot. */
static uint32_t place(const hfn_time_state *t, uint32_t parent, uint32_t slot)
{
    for (uint32_t i = 0; i < timed.header.nodes_used; i++) {
        const hfn_time_node *n = &timed.nodes[i];
        if ((n->flags & HFN_NODE_USED) && n->slot == slot &&
            n->parent + 1 == (parent ? parent : t->root)) {
            return i + 1;
        }
    }
    CHECK(!"there is such a place");
    return 1;
}

static uint64_t ticks_of(uint32_t node)
{
    return timed.nodes[node - 1].total_ticks;
}

static uint64_t calls_of(uint32_t node)
{
    return timed.nodes[node - 1].calls;
}

static void ticks_belong_to_the_place_where_they_come(void)
{
    hfn_time_state *t = start(0);
    hfn_time_frame frames[2];

    enter(&frames[1], 1);
    tick += 100;
    for (int k = 0; k < 3; k++) {
        enter(&frames[0], 2);
        tick += 20;
        leave(&frames[0]);
    }
    enter(&frames[0], 2);
    leave(&frames[0]);
    tick += 5;
    leave(&frames[1]);
    uint32_t outer = place(t, 0, 1), inner = place(t, outer, 2);
    CHECK_EQ_U64(ticks_of(outer), 105);
    CHECK_EQ_U64(calls_of(outer), 1);
    CHECK_EQ_U64(ticks_of(inner), 60);
    CHECK_EQ_U64(calls_of(inner), 4);
    CHECK_EQ_U64(timed_cell(t, 1)->max_ticks, 165);
    CHECK_EQ_U64(timed_cell(t, 2)->max_ticks, 20);
    CHECK_EQ_U64(t->hook_ticks, 0);
    CHECK_EQ_U64(t->depth, 0);
    timed_forget();
}

/* A call is in its function's histogram exactly if a tick came during it. */
static void long_calls_are_in_the_histogram(void)
{
    hfn_time_state *t = start(HOTFN_TIMING_HISTOGRAMS);
    hfn_time_frame frame;

    for (int k = 0; k < 10; k++) {
        enter(&frame, 3);
        tick += k < 4 ? 50 : 0;
        leave(&frame);
    }
    uint32_t histogram = timed_cell(t, 3)->histogram;
    CHECK(histogram != 0 && histogram <= TIMED_HISTOGRAMS);
    CHECK_EQ_U64(timed.histograms[histogram - 1][50], 4);
    CHECK_EQ_U64(timed.histograms[histogram - 1][0], 0);
    timed_forget();
}

/* Calls that longjmp left have frames below the next one. */
static void calls_that_were_left_are_removed(void)
{
    hfn_time_state *t = start(0);
    hfn_time_frame frames[4]; /* stacks grow down: the last one is the outermost */

    enter(&frames[3], 1);
    enter(&frames[1], 2);
    enter(&frames[0], 3);
    tick += 10;
    enter(&frames[2], 4); /* called by 1, so 2 and 3 were left */
    tick += 20;
    leave(&frames[2]);
    leave(&frames[3]);
    uint32_t outer = place(t, 0, 1);
    CHECK_EQ_U64(ticks_of(place(t, place(t, outer, 2), 3)), 10);
    CHECK_EQ_U64(ticks_of(place(t, outer, 4)), 20);
    CHECK_EQ_U64(timed.header.abandoned_exits, 2);
    CHECK_EQ_U64(t->depth, 0);
    timed_forget();
}

static void an_exception_ends_the_calls_that_it_passes(void)
{
    hfn_time_state *t = start(0);
    hfn_time_frame frames[3];

    enter(&frames[2], 1);
    enter(&frames[1], 2);
    hfn_time_leave((uint64_t)(uintptr_t)&frames[1]);
    tick += 30; /* the handler, in 1 */
    enter(&frames[0], 3);
    leave(&frames[0]);
    leave(&frames[2]);
    uint32_t outer = place(t, 0, 1);
    CHECK_EQ_U64(ticks_of(outer), 30);
    CHECK_EQ_U64(calls_of(place(t, outer, 3)), 1);
    CHECK_EQ_U64(timed.header.abandoned_exits, 0);
    timed_forget();
}

/* A coroutine goes on in another thread, whose tree has the function below its root. */
static void a_call_may_end_on_another_thread(void)
{
    hfn_time_state *first = start(0), *second;
    hfn_time_frame frames[2], other;

    enter(&frames[1], 1);
    enter(&frames[0], 2);
    second = timed_use(1);
    enter(&other, 5); /* gives the thread a root */
    leave(&other);
    leave(&frames[0]);
    tick += 300; /* in 1 */
    leave(&frames[1]);
    CHECK_EQ_U64(ticks_of(place(second, 0, 1)), 300);
    CHECK_EQ_U64(ticks_of(place(first, 0, 1)), 0);
    CHECK_EQ_U64(second->depth, 0);
    timed_forget();
}

/* The recursion is deeper than the open-call stack and the tree. */
static void deep_recursion_is_timed(void)
{
    enum { DEPTH = HFN_LOG_CAPACITY + 100 };
    static hfn_time_frame frames[DEPTH];
    hfn_time_state *t = start(0);
    uint64_t calls = 0, ticks = 0;

    for (uint32_t i = 0; i < DEPTH; i++) {
        enter(&frames[DEPTH - 1 - i], 1);
        tick++;
    }
    for (uint32_t i = 0; i < DEPTH; i++) {
        leave(&frames[i]);
    }
    for (uint32_t i = 0; i < timed.header.nodes_used; i++) {
        calls += timed.nodes[i].calls;
        ticks += timed.nodes[i].total_ticks;
    }
    CHECK_EQ_U64(calls, DEPTH);
    CHECK_EQ_U64(ticks, DEPTH);
    CHECK_EQ_U64(t->depth, 0);
    CHECK_EQ_U64(timed_cell(t, 1)->max_ticks, DEPTH);
    timed_forget();
}

/* A call of an earlier session returns as if it had never been seen. */
static void calls_of_an_earlier_session_are_ignored(void)
{
    hfn_time_frame frame;
    hfn_time_state *t;

    start(0);
    enter(&frame, 1);
    timed_forget();
    t = start(0);
    tick += 40;
    leave(&frame);
    CHECK_EQ_U64(t->depth, 0);
    CHECK_EQ_U64(timed.header.nodes_used, 0);
    timed_forget();
}

#if defined(CAN_STEP)
static uint64_t steps;

static void advance(int number)
{
    (void)number;
    tick++;
    steps++;
}

/* The clock advances with each instruction: ticks between the first and the last load of a hook
 * belong to no place, and all others are in the tree. */
static void ticks_of_hooks_belong_to_no_place(void)
{
    struct sigaction action = { .sa_handler = advance };

    sigaction(SIGTRAP, &action, NULL);
    for (int by_entries = 0; by_entries < 2; by_entries++) {
        hfn_time_state *t = start(0);
        hfn_time_frame frame;
        uint64_t begin = tick, ticks = 0;

        enter(&frame, 2); /* gives the thread a root */
        leave(&frame);
        steps = 0;
        trap_flag_set();
        for (volatile int i = 0; i < 20; i++) {
            if (by_entries) { /* as stubs do */
                hfn_time_probe(1, hfn_tick_enter_entry, hfn_tick_exit_entry, 1);
            } else {
                enter(&frame, 1);
                leave(&frame);
            }
        }
        trap_flag_clear();
        for (uint32_t i = 0; i < timed.header.nodes_used; i++) {
            ticks += timed.nodes[i].total_ticks;
        }
        CHECK_EQ_U64(calls_of(place(t, 0, 1)), 20);
        CHECK_EQ_U64(ticks + t->hook_ticks, t->last_tick - begin);
        CHECK(t->hook_ticks >= 20 * 30);
        CHECK(ticks > 0 && ticks < steps * 3 / 4); /* the rest is spent in stubs and in this test */
        timed_forget();
    }
    signal(SIGTRAP, SIG_DFL);
}

/* A signal arrives at each instruction, and its handler makes a timed call and finds a new tick. */
static void call_in_handler(int number)
{
    hfn_time_frame f;

    (void)number;
    tick++;
    steps++;
    enter(&f, 9);
    leave(&f);
}

static void a_handlers_calls_at_any_instruction_keep_the_tree(void)
{
    struct sigaction action = { .sa_handler = call_in_handler };

    sigaction(SIGTRAP, &action, NULL);
    for (int by_entries = 0; by_entries < 2; by_entries++) {
        hfn_time_state *t = start(HOTFN_TIMING_HISTOGRAMS);
        hfn_time_frame frame;
        uint64_t begin = tick, ticks = 0, in_handler = 0, calls = 0;

        enter(&frame, 2); /* gives the thread a root */
        leave(&frame);
        steps = 0;
        trap_flag_set();
        for (volatile int i = 0; i < 5; i++) {
            if (by_entries) {
                hfn_time_probe(1, hfn_tick_enter_entry, hfn_tick_exit_entry, 1);
            } else {
                enter(&frame, 1);
                leave(&frame);
            }
        }
        trap_flag_clear();
        for (uint32_t i = 0; i < timed.header.nodes_used; i++) {
            ticks += timed.nodes[i].total_ticks;
            in_handler += timed.nodes[i].slot == 9 ? timed.nodes[i].calls : 0;
            calls += timed.nodes[i].slot == 1 ? timed.nodes[i].calls : 0;
        }
        CHECK(steps > 300);
        CHECK_EQ_U64(in_handler, steps);
        CHECK_EQ_U64(calls, 5);
        CHECK_EQ_U64(ticks + t->hook_ticks, t->last_tick - begin);
        CHECK_EQ_U64(t->depth, 0);
        CHECK_EQ_U64(t->node, t->root);
        CHECK_EQ_U64(timed.header.abandoned_exits, 0);
        timed_forget();
    }
    signal(SIGTRAP, SIG_DFL);
}
#else
static void signals_at_each_instruction_are_not_tested_here(void)
{
    puts("# signals at each instruction: x86 only, and not under thread sanitizer");
}
#endif

/* ---- Waiting.  The test sets the thread's processor time; a tick is a nanosecond. */

static hfn_time_state *start_waiting(void)
{
    hfn_time_state *t = start(0);

    hfn_time.cpu_rate = HFN_CPU_RATE_NS;
    hfn_time.waiting_ticks = UINT32_MAX; /* the engine never reads the processor time itself */
    hfn_waiting_begin(t, tick);
    t->cpu_ns = 5000;
    return t;
}

static uint64_t waited_at(uint32_t node)
{
    return timed.nodes[node - 1].waited_ticks;
}

/* A call of function 1, which spends `outer` ticks itself, and one of 2 within it. */
static void call_both(uint64_t outer, uint64_t inner)
{
    hfn_time_frame frames[2];

    enter(&frames[1], 1);
    enter(&frames[0], 2);
    tick += inner;
    leave(&frames[0]);
    tick += outer;
    leave(&frames[1]);
}

static void what_is_not_processor_time_is_waiting(void)
{
    hfn_time_state *t = start_waiting();

    call_both(100, 900);
    hfn_waiting_charge(t, 5000 + 400);
    uint32_t outer = place(t, 0, 1), inner = place(t, outer, 2);
    CHECK_EQ_U64(waited_at(inner), 600); /* where the longest interval was */
    CHECK_EQ_U64(waited_at(outer), 0);
    CHECK_EQ_U64(ticks_of(inner), 900);
    call_both(3000, 10);
    hfn_waiting_charge(t, 5400 + 3010);
    CHECK_EQ_U64(waited_at(inner) + waited_at(outer), 600);
    call_both(3000, 10);
    hfn_waiting_charge(t, 8410 + 11);
    CHECK_EQ_U64(waited_at(outer), 2999);
    CHECK_EQ_U64(t->cpu_ns, 8421);
    timed_forget();
}

/* Of an interval, not more than its length is waiting. */
static void waiting_is_at_most_the_longest_interval(void)
{
    hfn_time_state *t = start_waiting();

    for (int i = 0; i < 10; i++) {
        call_both(0, 100);
    }
    hfn_waiting_charge(t, 5000 + 200);
    CHECK_EQ_U64(waited_at(place(t, place(t, 0, 1), 2)), 100);
    timed_forget();
}

/* The latest tick is older than the reading of the processor time. */
static void a_late_tick_is_not_waiting(void)
{
    hfn_time_state *t = start_waiting();

    call_both(0, 1000);
    hfn_waiting_charge(t, 5000 + 1030);
    call_both(0, 1000);
    hfn_waiting_charge(t, 6030 + 970);
    uint32_t inner = place(t, place(t, 0, 1), 2);
    CHECK_EQ_U64(waited_at(inner), 0);
    call_both(0, 1000);
    hfn_waiting_charge(t, 7000);
    CHECK_EQ_U64(waited_at(inner), 1000);
    timed_forget();
}

/* The processor time of a thread that takes over the row begins at 0. */
static void another_thread_begins_anew(void)
{
    hfn_time_state *t = start_waiting();

    t->cpu_ns = UINT64_MAX;
    call_both(0, 1000);
    hfn_waiting_read(HFN_PASS(t));
    CHECK(t->cpu_ns < UINT64_MAX);
    CHECK_EQ_U64(t->cpu_tick, tick);
    CHECK_EQ_U64(waited_at(place(t, place(t, 0, 1), 2)), 0);
    timed_forget();
}

static const check_test tests[] = {
    CHECK_TEST(what_is_not_processor_time_is_waiting),
    CHECK_TEST(waiting_is_at_most_the_longest_interval),
    CHECK_TEST(a_late_tick_is_not_waiting),
    CHECK_TEST(another_thread_begins_anew),
    CHECK_TEST(ticks_belong_to_the_place_where_they_come),
    CHECK_TEST(long_calls_are_in_the_histogram),
    CHECK_TEST(calls_that_were_left_are_removed),
    CHECK_TEST(an_exception_ends_the_calls_that_it_passes),
    CHECK_TEST(a_call_may_end_on_another_thread),
    CHECK_TEST(deep_recursion_is_timed),
    CHECK_TEST(calls_of_an_earlier_session_are_ignored),
#if defined(CAN_STEP)
    CHECK_TEST(ticks_of_hooks_belong_to_no_place),
    CHECK_TEST(a_handlers_calls_at_any_instruction_keep_the_tree),
#else
    CHECK_TEST(signals_at_each_instruction_are_not_tested_here),
#endif
};
CHECK_MAIN(tests)
