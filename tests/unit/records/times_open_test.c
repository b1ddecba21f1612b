/* SPDX-License-Identifier: MIT */
/* Calls that had not returned, and sums over the call tree. */
#include "records/times.h"

#include "check.h"

enum { OUTER = 1, INNER = 3, END = 200, SLOTS = 10 };

static hfn_times times;

/* A thread that has run INNER, called by OUTER, since 150, and a thread that does nothing.  Places:
 * a root, OUTER, INNER. */
static hfn_time_state *start(uint32_t flags)
{
    hotfn_env env = hfn_env_fill(NULL);
    hfn_time_state *s;

    hfn_times_init(&times, &env);
    CHECK(hfn_times_make_threads(&times, 2) && hfn_times_make_nodes(&times, 3, false));
    times.present = true;
    times.header.flags = flags;
    times.nodes[0] = (hfn_time_node){ .slot = UINT32_MAX };
    times.nodes[1] = (hfn_time_node){ .parent = 0, .slot = OUTER, .calls = 1, .total_ticks = 7 };
    times.nodes[2] = (hfn_time_node){ .parent = 1, .slot = INNER, .calls = 2, .total_ticks = 43 };
    s = (void *)&times.threads[0];
    s->last_tick = 150;
    s->hook_ticks = 10;
    s->node = 3;
    s->started = 2;
    return s;
}

static const hfn_time_cell *cell(uint32_t slot)
{
    for (size_t i = 0; i < times.entry_count; i++) {
        if (times.entries[i].slot == slot && times.entries[i].thread == 0) {
            return &times.entries[i].cell;
        }
    }
    CHECK(!"there is such a cell");
    return &times.entries[0].cell;
}

static const hfn_thread_cell owner = { .tid = 1, .thread_count = 1 };

static void add_log(hfn_time_state *s, const hfn_open_call *calls, uint32_t count)
{
    s->depth = count;
    CHECK(hfn_times_add_running(&times, 0, &owner, END));
    CHECK(hfn_times_add_open(&times, 0, calls, 0, count, END));
}

static const hfn_open_call two[] = {
    { .frame = 9000, .start = 90, .call_word = OUTER | UINT64_C(2) << 32 }, /* own time */
    { .frame = 8000, .start = 110, .call_word = INNER | UINT64_C(3) << 32 },
};

static void open_calls_have_the_time_until_the_end(void)
{
    add_log(start(HOTFN_TIMING_TREE), two, 2);
    CHECK(hfn_times_sum_tree(&times, SLOTS));
    hfn_times_end_open(&times);
    CHECK_EQ_U64(cell(INNER)->self_ticks, 43 + 50); /* since 150 */
    CHECK_EQ_U64(cell(INNER)->timed_calls, 2);
    CHECK_EQ_U64(cell(INNER)->open, 1);
    CHECK_EQ_U64(cell(INNER)->max_ticks, END - 110 - 10);
    CHECK_EQ_U64(cell(OUTER)->total_ticks, 7 + 43 + 50);
    CHECK_EQ_U64(cell(OUTER)->self_ticks, 7);
    CHECK_EQ_U64(cell(OUTER)->callee_timed, 2);
    CHECK_EQ_U64(cell(OUTER)->within_timed, 3);
    CHECK_EQ_U64(cell(OUTER)->open, 1);
    CHECK_EQ_U64(times.threads[0].busy_ticks, 100);
    CHECK_EQ_U64(times.threads[0].last_tick, 200);
    hfn_times_end_open(&times); /* once */
    CHECK_EQ_U64(cell(OUTER)->open, 1);
    hfn_times_finish(&times);
}

/* The cost of hooks that is subtracted may exceed the time of a place. */
static void a_negative_time_of_a_place_reduces_its_callers(void)
{
    start(HOTFN_TIMING_TREE);
    times.nodes[1].total_ticks = 100;
    times.nodes[2].total_ticks = (uint64_t)-30;
    CHECK(hfn_times_sum_tree(&times, SLOTS));
    CHECK_EQ_U64(cell(INNER)->self_ticks, 0);
    CHECK_EQ_U64(cell(INNER)->total_ticks, 0);
    CHECK_EQ_U64(cell(OUTER)->self_ticks, 70);
    CHECK_EQ_U64(cell(OUTER)->total_ticks, 70);
    CHECK_EQ_U64(times.threads[0].busy_ticks, 70);
    hfn_times_finish(&times);
}

static uint64_t total_waited(uint32_t slot)
{
    for (size_t i = 0; i < times.entry_count; i++) {
        if (times.entries[i].slot == slot && times.entries[i].thread == 0) {
            return times.entries[i].total_waited_ticks;
        }
    }
    return UINT64_MAX;
}

static void waiting_is_part_of_totals_but_not_of_self_times(void)
{
    start(HOTFN_TIMING_TREE);
    times.nodes[1].total_ticks = 100;
    times.nodes[1].waited_ticks = 30;
    times.nodes[2].total_ticks = 40;
    times.nodes[2].waited_ticks = 50; /* at most as long as the place's time */
    CHECK(hfn_times_sum_tree(&times, SLOTS));
    CHECK_EQ_U64(cell(INNER)->self_ticks, 0);
    CHECK_EQ_U64(cell(INNER)->waited_ticks, 40);
    CHECK_EQ_U64(cell(INNER)->total_ticks, 40);
    CHECK_EQ_U64(cell(OUTER)->self_ticks, 70);
    CHECK_EQ_U64(cell(OUTER)->waited_ticks, 30);
    CHECK_EQ_U64(cell(OUTER)->total_ticks, 140);
    CHECK_EQ_U64(total_waited(OUTER), 70);
    CHECK_EQ_U64(times.threads[0].busy_ticks, 70);
    hfn_times_finish(&times);
}

/* The launcher reads a thread's processor time ten times a second, so the last tenth is unknown. */
static void a_thread_that_waits_at_the_end_has_waited(void)
{
    const uint64_t second = 1000000000;
    hfn_thread_cell sleeper = { .tid = 1, .thread_count = 1, .cpu_ns = 500 };

    for (int computes = 0; computes < 2; computes++) {
        hfn_time_state *s = start(HOTFN_TIMING_TREE | HOTFN_TIMING_WAITING);
        times.header.ticks_per_second = second;
        s->depth = 1;
        s->last_tick = s->cpu_tick = second;
        s->cpu_ns = 400;
        sleeper.cpu_ns = computes ? second : 500;
        times.nodes[2].total_ticks = 0;
        CHECK(hfn_times_add_running(&times, 0, &sleeper, 2 * second));
        CHECK(hfn_times_sum_tree(&times, SLOTS));
        CHECK_EQ_U64(cell(INNER)->waited_ticks, computes ? 0 : second - second / 10 - 100);
        hfn_times_finish(&times);
    }
}

/* Free entries of the log, and calls that an exception has ended. */
static void other_entries_are_not_open(void)
{
    hfn_open_call calls[] = { two[0], two[1], two[1] };

    calls[1].frame = 0;
    calls[2].frame = 1;
    add_log(start(HOTFN_TIMING_TREE), calls, 3);
    CHECK(hfn_times_sum_tree(&times, SLOTS));
    hfn_times_end_open(&times);
    CHECK_EQ_U64(cell(OUTER)->open, 1);
    CHECK_EQ_U64(cell(INNER)->open, 0);
    hfn_times_finish(&times);
}

static void open_calls_of_a_sample_represent_others(void)
{
    const hfn_open_call calls[] = {
        { .frame = 9000, .start = 100, .interval = 8, .call_word = OUTER },
        { .frame = 1,
          .start = 100,
          .interval = 8,
          .call_word = OUTER }, /* an exception has ended it */
        { .frame = 0, .start = 100, .interval = 8, .call_word = OUTER },
    };
    const hfn_time_entry entry = { .slot = OUTER, .cell = { .open = 0 } };
    hfn_time_state *s = start(HOTFN_TIMING_SAMPLED);

    CHECK(hfn_times_add_entry(&times, &entry));
    s->epoch = 120; /* a forked child's calls count from the fork on */
    add_log(s, calls, 3);
    hfn_times_end_open(&times);
    CHECK_EQ_U64(cell(OUTER)->total_ticks, 8 * (END - 120));
    CHECK_EQ_U64(cell(OUTER)->timed_calls, 1);
    CHECK_EQ_U64(cell(OUTER)->open, 1);
    CHECK_EQ_U64(cell(OUTER)->sampled.weight, 8);
    CHECK_EQ_U64(cell(OUTER)->sampled.squares,
                 8 * 7 * ((END - 120) >> HFN_SAMPLE_SHIFT) * ((END - 120) >> HFN_SAMPLE_SHIFT));
    hfn_times_finish(&times);
}

static void damaged_numbers_are_ignored(void)
{
    hfn_open_call calls[] = { two[0], two[0] };
    hfn_time_state *s = start(HOTFN_TIMING_TREE);

    calls[0].call_word = HFN_CALL_SLOT | UINT64_C(0xffffffff) << 32;
    calls[1].start = END + 1; /* in the future */
    s->node = UINT32_MAX;
    add_log(s, calls, 2);
    CHECK(hfn_times_sum_tree(&times, SLOTS));
    hfn_times_end_open(&times);
    CHECK_EQ_U64(cell(OUTER)->total_ticks, 50);
    CHECK_EQ_U64(cell(OUTER)->open, 1);
    CHECK_EQ_U64(cell(INNER)->open, 0);
    hfn_times_finish(&times);
}

/* OUTER is open in both states; INNER began between them. */
static void a_difference_has_its_own_part_of_open_calls(void)
{
    hfn_times from;
    hfn_time_state *s = start(HOTFN_TIMING_TREE);

    s->node = 2;
    s->last_tick = 100;
    s->depth = 1;
    times.nodes[2].total_ticks = times.nodes[2].calls = 0;
    CHECK(hfn_times_add_running(&times, 0, &owner, 110) &&
          hfn_times_add_open(&times, 0, two, 0, 1, 110));
    CHECK(hfn_times_sum_tree(&times, SLOTS));
    from = times;
    s = start(HOTFN_TIMING_TREE);
    times.nodes[1].total_ticks = 7 + 20; /* until 120 */
    add_log(s, two, 2);
    CHECK(hfn_times_sum_tree(&times, SLOTS));
    CHECK(hfn_times_subtract(&times, &from));
    CHECK_EQ_U64(cell(OUTER)->self_ticks, 10);
    CHECK_EQ_U64(cell(OUTER)->total_ticks, 10 + 43 + 50);
    CHECK_EQ_U64(cell(OUTER)->open, 1);
    CHECK_EQ_U64(cell(INNER)->total_ticks, 43 + 50);
    hfn_times_finish(&times);
    hfn_times_finish(&from);
}

/* The program executed another one, which forked. */
static void each_process_has_an_end(void)
{
    static const hfn_thread_cell owners[] = { { .pid = 10, .process = 5 },
                                              { .pid = 10, .process = 3 },
                                              { .pid = 11, .process = 4 },
                                              { .pid = 10, .process = 3 } };
    static const uint64_t last[] = { 100, 90, 120, 150 };
    uint64_t ends[4];
    hotfn_env env = hfn_env_fill(NULL);

    hfn_times_init(&times, &env);
    CHECK(hfn_times_make_threads(&times, 4));
    for (int i = 0; i < 4; i++) {
        times.threads[i].last_tick = last[i];
    }
    CHECK(hfn_times_find_ends(&times, owners, 4, 10, 500, ends));
    CHECK(ends[0] == 100 && ends[1] == 500 && ends[2] == 120 && ends[3] == 500);
    CHECK(hfn_times_find_ends(&times, owners, 4, 10, 0, ends));
    CHECK(ends[0] == 100 && ends[1] == 150 && ends[2] == 120 && ends[3] == 150);
    hfn_times_finish(&times);
}

static void slow_open_calls_follow_the_slow_calls(void)
{
    hfn_time_state *s = start(HOTFN_TIMING_TREE | HOTFN_TIMING_SLOW);

    times.header.slow_ticks = 100;
    times.header.slow_used = 4; /* three of them were overwritten */
    CHECK(hfn_times_make_slow_calls(&times, 1));
    times.slow[0] = (hfn_slow_call){ .sequence = 4, .ticks = 300, .node = 2, .slot = INNER };
    add_log(s, two, 2);
    CHECK(hfn_times_sum_tree(&times, SLOTS));
    CHECK(hfn_times_validate(&times, SLOTS, 2));
    CHECK_EQ_U64(times.slow_count, 2);
    CHECK_EQ_U64(times.header.slow_used, 5);
    CHECK_EQ_U64(times.slow[0].ticks, 300);
    CHECK_EQ_U64(times.slow[1].sequence, 5);
    CHECK_EQ_U64(times.slow[1].start_ticks, 100);
    CHECK_EQ_U64(times.slow[1].ticks, 100);
    CHECK_EQ_U64(times.slow[1].slot, OUTER);
    CHECK_EQ_U64(times.slow[1].node, 0);
    hfn_times_finish(&times);
}

static const check_test tests[] = {
    CHECK_TEST(slow_open_calls_follow_the_slow_calls),
    CHECK_TEST(open_calls_have_the_time_until_the_end),
    CHECK_TEST(a_negative_time_of_a_place_reduces_its_callers),
    CHECK_TEST(waiting_is_part_of_totals_but_not_of_self_times),
    CHECK_TEST(a_thread_that_waits_at_the_end_has_waited),
    CHECK_TEST(other_entries_are_not_open),
    CHECK_TEST(open_calls_of_a_sample_represent_others),
    CHECK_TEST(damaged_numbers_are_ignored),
    CHECK_TEST(a_difference_has_its_own_part_of_open_calls),
    CHECK_TEST(each_process_has_an_end),
};
CHECK_MAIN(tests)
