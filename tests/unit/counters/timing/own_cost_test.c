/* SPDX-License-Identifier: MIT */
/* A thread learns what a timed call costs as it runs: with calls of the engine's own, which change nothing of what is
 * told of the program's, wherever a signal strikes meanwhile. */
#include "counters/timed_row.h"
#include "counters/trap_flag.h"

#include "check.h"

#include <signal.h>

enum { TRIES = 3, CALLS = TRIES * (2 * HFN_PROBE_FEW + HFN_PROBE_CALLS) };

static uint64_t own_slot(void)
{
    return hfn_time_own_slot(hfn_time.hints_at);
}

/* As so often before. */
static void call(uint32_t slot, bool full, uint64_t times)
{
    for (uint64_t i = 0; i < times; i++) {
        hfn_time_frame f;
        f.slot = slot;
        if (full) {
            hfn_time_enter_full(&f);
            hfn_time_exit_full(&f);
        } else {
            hfn_time_enter(&f);
            hfn_time_exit(&f);
        }
    }
}

static void check_tried_once(hfn_time_state *t, uint64_t calls)
{
    const hfn_time_cell *own = hfn_time_cell_of(t, (uint32_t)own_slot() + 1);

    CHECK_EQ_U64(timed.header.probed_calls, HFN_PROBE_CALLS);
    CHECK(timed.header.probed_ticks > timed.header.probed_inside_ticks);
    CHECK_EQ_U64(own->timed_calls, CALLS);
    CHECK(own->total_ticks >= timed.header.probed_inside_ticks);
    CHECK_EQ_U64(timed_cell(t, 1)->timed_calls, calls);
    CHECK_EQ_U64(timed_cell(t, 0)->timed_calls, 0);
    CHECK_EQ_U64(t->depth, 0);
    CHECK_EQ_U64(t->current, 0);
    CHECK_EQ_U64(t->timed, HFN_PROBE_AT + CALLS);
    CHECK_EQ_U64(t->outside.callee_timed, calls + CALLS);
}

static void its_cell_stands_behind_all_else_of_the_row(void)
{
    for (uint64_t slots = 1; slots < 300; slots++) {
        uint64_t hints = hfn_time_hints_at(slots);
        uint64_t at = offsetof(hfn_time_state, outside) +
                      (hfn_time_own_slot(hints) + 1) * sizeof(hfn_time_cell);
        CHECK(at >= hints + (sizeof(uint64_t) << HFN_HINT_BITS));
        CHECK(at + sizeof(hfn_time_cell) <= hfn_time_row_bytes(slots));
    }
}

static void a_cost_is_learnt_once_in_2_16_calls(void)
{
    timed_start(0);
    hfn_time_state *t = timed_use(0);
    call(1, false, HFN_PROBE_AT - 1);
    CHECK_EQ_U64(timed.header.probed_calls, 0);
    call(1, false, 1);
    check_tried_once(t, HFN_PROBE_AT);
    call(1, false, 0xffff - CALLS);
    CHECK_EQ_U64(timed.header.probed_calls, HFN_PROBE_CALLS);
    call(1, false, 1);
    CHECK_EQ_U64(timed.header.probed_calls, 2 * HFN_PROBE_CALLS);
    timed_forget();
}

/* Tries would be in the totals of the calls around them, and in no place of the tree. */
static void a_tree_learns_none(void)
{
    timed_start(HOTFN_TIMING_TREE | HOTFN_TIMING_HISTOGRAMS);
    hfn_time_state *t = timed_use(0);
    call(1, true, 2 * HFN_PROBE_AT);
    CHECK_EQ_U64(t->timed, 2 * HFN_PROBE_AT);
    CHECK_EQ_U64(timed.header.probed_calls, 0);
    timed_forget();
}

/* By what a stub calls: on x86-64 the usual case is not C. */
static void a_cost_is_learnt_by_way_of_the_entries(void)
{
    timed_start(0);
    hfn_time_state *t = timed_use(0);
    hfn_time_probe(1, hfn_time_enter_entry, hfn_time_exit_entry, HFN_PROBE_AT);
    check_tried_once(t, HFN_PROBE_AT);
    timed_forget();
}

static void none_is_learnt_where_calls_go_another_way(void)
{
    timed_start(0);
    hfn_time_state *t = timed_use(0);
    t->timed = HFN_PROBE_AT - 1;
    t->suspended_count = 1; /* somewhere */
    hfn_time_suspended_of(t)[0].call.frame = t->suspended_low = t->suspended_high = 64;
    call(1, false, 1);
    t->suspended_count = 0;
    t->timed = HFN_PROBE_AT - 1;
    t->thread = 0; /* nobody's row */
    call(1, false, 1);
    CHECK_EQ_U64(t->timed, HFN_PROBE_AT);
    CHECK_EQ_U64(timed.header.probed_calls, 0);
    timed_forget();
}

static void ends_look_at_themselves_where_more_than_times_is_kept(void)
{
    for (int full = 0; full < 2; full++) {
        timed_start(full ? HOTFN_TIMING_HISTOGRAMS : 0);
        hfn_time_state *t = timed_use(0);
        call(1, full, 100);
        CHECK_EQ_U64(timed.header.seen_ends, 0); /* nothing is known of what they do not see */
        hfn_time.looks = 0;
        call(1, full, 100);
        CHECK_EQ_U64(timed.header.seen_ends, full ? 200 : 0);
        CHECK_EQ_U64(timed.header.seen_ticks > 0, full);
        CHECK_EQ_U64(timed_cell(t, 1)->timed_calls, 200);
        timed_forget();
    }
}

static void few_ends_look(void)
{
    uint64_t calls = 0;

    timed_start(HOTFN_TIMING_TREE);
    timed_use(0);
    hfn_time.looks = HFN_LOOKS_SELDOM;
    for (; calls < 1000000 && timed.header.seen_ends < 50; calls += 100) {
        call(1, true, 100);
    }
    CHECK_EQ_U64(timed.header.seen_ends >= 50, true);
    CHECK(calls > 1000);
    timed_forget();
}

static void an_end_that_was_interrupted_tells_nothing(void)
{
    timed_start(HOTFN_TIMING_TREE);
    timed_use(0);
    hfn_time_end_took(HFN_END_TICKS_MOST);
    CHECK_EQ_U64(timed.header.seen_ends, 0);
    hfn_time_end_took(HFN_END_TICKS_MOST - 1);
    CHECK_EQ_U64(timed.header.seen_ends, 1);
    CHECK_EQ_U64(timed.header.seen_ticks, HFN_END_TICKS_MOST - 1);
    hfn_timing_stop();
    hfn_time_end_took(1); /* of a call that is still open */
    CHECK_EQ_U64(timed.header.seen_ends, 1);
    timed_forget();
}

static void a_sample_learns_none(void)
{
    timed_start(HOTFN_TIMING_SAMPLED);
    hfn_time_state *t = timed_use(0);
    for (uint32_t i = 0; i < 2 * HFN_PROBE_AT; i++) {
        hfn_time_frame f = { .slot = 1 };
        t->timed = HFN_PROBE_AT;
        hfn_time_enter_sampled(&f);
        hfn_time_exit_sampled(&f);
    }
    CHECK_EQ_U64(timed.header.probed_calls, 0);
    timed_forget();
}

#if defined(CAN_STEP)
static uint64_t struck;

static void on_step(int number)
{
    hfn_time_state *t = hfn_time_state_of(hfn_thread_row);
    uint64_t before = t->timed;

    (void)number;
    struck++;
    call(9, false, 1);
    t->timed = before; /* or so many strikes would lead to the next measurement */
}

static void a_handlers_calls_are_counted_while_a_cost_is_learnt(void)
{
    struct sigaction action = { .sa_handler = on_step };

    timed_start(0);
    hfn_time_state *t = timed_use(0);
    sigaction(SIGTRAP, &action, NULL);
    struck = 0;
    t->timed = HFN_PROBE_AT;
    trap_flag_set();
    hfn_time_learn_cost();
    trap_flag_clear();
    signal(SIGTRAP, SIG_DFL);
    CHECK(struck > CALLS);
    CHECK_EQ_U64(timed_cell(t, 9)->timed_calls, struck);
    CHECK_EQ_U64(hfn_time_cell_of(t, (uint32_t)own_slot() + 1)->timed_calls, CALLS);
    CHECK_EQ_U64(timed.header.probed_calls, HFN_PROBE_CALLS);
    CHECK_EQ_U64(t->depth, 0);
    CHECK_EQ_U64(t->current, 0);
    CHECK_EQ_U64(timed.header.abandoned_exits, 0);
    timed_forget();
}
#endif

static const check_test tests[] = {
    CHECK_TEST(its_cell_stands_behind_all_else_of_the_row),
    CHECK_TEST(a_cost_is_learnt_once_in_2_16_calls),
    CHECK_TEST(a_cost_is_learnt_by_way_of_the_entries),
    CHECK_TEST(none_is_learnt_where_calls_go_another_way),
    CHECK_TEST(a_tree_learns_none),
    CHECK_TEST(ends_look_at_themselves_where_more_than_times_is_kept),
    CHECK_TEST(few_ends_look),
    CHECK_TEST(an_end_that_was_interrupted_tells_nothing),
    CHECK_TEST(a_sample_learns_none),
#if defined(CAN_STEP)
    CHECK_TEST(a_handlers_calls_are_counted_while_a_cost_is_learnt),
#endif
};
CHECK_MAIN(tests)
