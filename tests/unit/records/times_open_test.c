/* SPDX-License-Identifier: MIT */
/* Calls that had not returned: a row's log, as the engine left it, becomes sums. */
#include "records/times.h"

#include "check.h"

enum { OUTER = 1, INNER = 3, END = 200 };
enum { OUTER_ENTRY, INNER_ENTRY, OTHER_THREADS };

static hfn_times times;

static uint64_t how(uint32_t slot, uint32_t flags, uint32_t node)
{
    return slot | flags | (uint64_t)node << HFN_CALL_NODE_SHIFT;
}

/* A thread that runs INNER since 150, and one that does nothing. */
static hfn_time_state *start(uint32_t flags)
{
    const hfn_time_entry entries[] = {
        { .cell = { .self_ticks = 7 }, .slot = OUTER },
        { .cell = { .total_ticks = 50, .timed_calls = 1, .min_ticks = 51, .max_ticks = 50 },
          .slot = INNER },
        { .cell = { .self_ticks = 1 }, .slot = INNER, .thread = 1 },
    };
    hotfn_env env = hfn_env_fill(NULL);
    hfn_time_state *s;

    hfn_times_init(&times, &env);
    CHECK(hfn_times_make_threads(&times, 2) && hfn_times_make_nodes(&times, 2, false));
    for (int i = 0; i < 3; i++) {
        CHECK(hfn_times_add_entry(&times, &entries[i]));
    }
    times.present = true;
    times.header.flags = flags;
    times.nodes[0] = (hfn_time_node){ .slot = OUTER, .calls = 1 };
    times.nodes[1] = (hfn_time_node){
        .parent = 0, .slot = INNER, .calls = 2, .total_ticks = 50, .timed_calls = 1
    };
    s = (void *)&times.threads[0];
    s->current = INNER + 1;
    s->last_tick = 150;
    s->timed = 7;
    return s;
}

static const hfn_time_cell *cell(int entry)
{
    return &times.entries[entry].cell;
}

static void take(hfn_time_state *s, const hfn_open_call *calls, uint32_t count)
{
    s->depth = count;
    CHECK(hfn_times_add_running(&times, 0, END));
    CHECK(hfn_times_add_open(&times, 0, calls, 0, count, END));
}

static const hfn_open_call two[] = {
    { .frame = 9000, .start = 100, .timed_before = 5, .how = OUTER | UINT64_C(1) << 32 },
    { .frame = 8000, .start = 120, .timed_before = 7, .how = INNER | UINT64_C(2) << 32 },
};

static void they_have_the_time_until_the_end(void)
{
    take(start(HOTFN_TIMING_TREE), two, 2);
    CHECK_EQ_U64(cell(OUTER_ENTRY)->total_ticks, 0);
    hfn_times_end_open(&times);
    CHECK_EQ_U64(cell(OUTER_ENTRY)->total_ticks, 100);
    CHECK_EQ_U64(cell(OUTER_ENTRY)->timed_calls, 1);
    CHECK_EQ_U64(cell(OUTER_ENTRY)->open, 1);
    CHECK_EQ_U64(cell(OUTER_ENTRY)->within_timed, 3); /* two had ended in it, and itself */
    CHECK_EQ_U64(cell(OUTER_ENTRY)->min_ticks, 101);
    CHECK_EQ_U64(cell(OUTER_ENTRY)->self_ticks, 7);
    CHECK_EQ_U64(cell(INNER_ENTRY)->total_ticks, 130);
    CHECK_EQ_U64(cell(INNER_ENTRY)->timed_calls, 2);
    CHECK_EQ_U64(cell(INNER_ENTRY)->open, 1);
    CHECK_EQ_U64(cell(INNER_ENTRY)->min_ticks, 51);
    CHECK_EQ_U64(cell(INNER_ENTRY)->max_ticks, 80);
    CHECK_EQ_U64(cell(INNER_ENTRY)->self_ticks, 50); /* since 150 */
    CHECK_EQ_U64(times.threads[0].busy_ticks, 50);
    CHECK_EQ_U64(times.threads[0].last_tick, 200); /* it was there */
    CHECK_EQ_U64(times.nodes[0].total_ticks, 100);
    CHECK_EQ_U64(times.nodes[1].total_ticks, 130);
    CHECK_EQ_U64(times.nodes[1].timed_calls, 2);
    CHECK_EQ_U64(times.nodes[1].within_timed, 0); /* the engine's, in a tree */
    CHECK_EQ_U64(cell(OTHER_THREADS)->self_ticks, 1);
    hfn_times_end_open(&times); /* once */
    CHECK_EQ_U64(cell(OUTER_ENTRY)->total_ticks, 100);
    hfn_times_finish(&times);
}

static void a_childs_calls_count_from_the_fork_on(void)
{
    hfn_time_state *s = start(HOTFN_TIMING_TREE);

    s->floor = 130;
    take(s, two, 2);
    hfn_times_end_open(&times);
    CHECK_EQ_U64(cell(OUTER_ENTRY)->total_ticks, 70);
    CHECK_EQ_U64(cell(INNER_ENTRY)->total_ticks, 120);
    hfn_times_finish(&times);
}

static void recursion_counts_once(void)
{
    hfn_open_call calls[] = { two[1], two[1], two[1] };

    calls[1].how = how(INNER, HFN_CALL_NESTED, 2);
    calls[2].how = how(INNER, HFN_CALL_NESTED | HFN_CALL_MERGED, 1); /* its caller's place */
    take(start(HOTFN_TIMING_TREE), calls, 3);
    hfn_times_end_open(&times);
    CHECK_EQ_U64(cell(INNER_ENTRY)->total_ticks, 130);
    CHECK_EQ_U64(cell(INNER_ENTRY)->open, 3);
    CHECK_EQ_U64(times.nodes[0].total_ticks, 0);
    CHECK_EQ_U64(times.nodes[1].total_ticks, 50 + 2 * 80);
    hfn_times_finish(&times);
}

/* Free places, what an exception has ended, and one that was killed while it began. */
static void what_is_not_open_is_left_out(void)
{
    hfn_open_call calls[] = { two[0], two[1], two[1], two[0] };

    calls[1].frame = 0;
    calls[2].how |= HFN_CALL_ENDED;
    take(start(HOTFN_TIMING_TREE), calls, 4);
    hfn_times_end_open(&times);
    CHECK_EQ_U64(cell(OUTER_ENTRY)->open, 1);
    CHECK_EQ_U64(cell(INNER_ENTRY)->open, 0);
    CHECK_EQ_U64(cell(INNER_ENTRY)->total_ticks, 50);
    hfn_times_finish(&times);
}

static void open_calls_of_a_sample_stand_for_others(void)
{
    const hfn_open_call calls[] = {
        { .frame = 9000, .start = 100, .interval = 8, .how = OUTER },
        { .frame = 1, .start = 100, .interval = 8, .how = OUTER }, /* an exception left it */
        { .frame = 0, .start = 100, .interval = 8, .how = OUTER },
    };

    take(start(HOTFN_TIMING_SAMPLED), calls, 3);
    hfn_times_end_open(&times);
    CHECK_EQ_U64(cell(OUTER_ENTRY)->total_ticks, 8 * (END - 100));
    CHECK_EQ_U64(cell(OUTER_ENTRY)->timed_calls, 1);
    CHECK_EQ_U64(cell(OUTER_ENTRY)->open, 1);
    CHECK_EQ_U64(cell(OUTER_ENTRY)->sampled.weight, 8);
    CHECK_EQ_U64(cell(OUTER_ENTRY)->sampled.squares,
                 8 * 7 * ((END - 100) >> HFN_SAMPLE_SHIFT) * ((END - 100) >> HFN_SAMPLE_SHIFT));
    hfn_times_finish(&times);
}

static void numbers_of_nobody_do_nothing(void)
{
    hfn_open_call calls[] = { two[0], two[0], two[1] };
    hfn_time_state *s = start(HOTFN_TIMING_TREE);

    calls[0].how = how(HFN_CALL_SLOT, 0, UINT32_MAX);
    calls[1].how = how(OUTER, 0, 2); /* another function's place */
    calls[1].start = END + 1;
    s->current = UINT32_MAX;
    take(s, calls, 3);
    hfn_times_end_open(&times);
    CHECK_EQ_U64(cell(OUTER_ENTRY)->total_ticks, 0);
    CHECK_EQ_U64(cell(OUTER_ENTRY)->open, 1);
    CHECK_EQ_U64(cell(INNER_ENTRY)->open, 0);
    CHECK_EQ_U64(times.nodes[1].total_ticks, 50);
    hfn_times_finish(&times);
}

/* Open at both ends of a window, OUTER has the window's time; INNER began in it. */
static void a_window_has_its_own_part_of_them(void)
{
    hfn_times from;
    hfn_time_state *s = start(HOTFN_TIMING_TREE);

    s->current = OUTER + 1;
    s->last_tick = 100;
    s->depth = 1;
    CHECK(hfn_times_add_running(&times, 0, 110) && hfn_times_add_open(&times, 0, two, 0, 1, 110));
    times.entries[INNER_ENTRY].cell = (hfn_time_cell){ .open = 0 };
    times.nodes[1].total_ticks = times.nodes[1].timed_calls = times.nodes[1].calls = 0;
    from = times;
    s = start(HOTFN_TIMING_TREE);
    times.entries[OUTER_ENTRY].cell.self_ticks = 7 + 20; /* until 120 */
    take(s, two, 2);
    CHECK(hfn_times_subtract(&times, &from));
    CHECK_EQ_U64(cell(OUTER_ENTRY)->total_ticks, 90);
    CHECK_EQ_U64(cell(OUTER_ENTRY)->self_ticks, 10);
    CHECK_EQ_U64(cell(OUTER_ENTRY)->open, 1);
    CHECK_EQ_U64(cell(INNER_ENTRY)->total_ticks, 130);
    CHECK_EQ_U64(times.nodes[0].total_ticks, 90);
    CHECK_EQ_U64(times.nodes[0].timed_calls, 1);
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

static void those_that_are_slow_by_then_are_slow_calls(void)
{
    hfn_time_state *s = start(HOTFN_TIMING_TREE | HOTFN_TIMING_SLOW);

    times.header.slow_ticks = 100;
    times.header.slow_used = 4; /* three of them were overwritten */
    CHECK(hfn_times_make_slow_calls(&times, 1));
    times.slow[0] = (hfn_slow_call){ .sequence = 4, .ticks = 300, .node = 1, .slot = INNER };
    times.nodes[0].parent = times.nodes[1].parent = UINT32_MAX;
    take(s, two, 2);
    CHECK(hfn_times_validate(&times, 10, 2));
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
    CHECK_TEST(those_that_are_slow_by_then_are_slow_calls),
    CHECK_TEST(they_have_the_time_until_the_end),
    CHECK_TEST(a_childs_calls_count_from_the_fork_on),
    CHECK_TEST(recursion_counts_once),
    CHECK_TEST(what_is_not_open_is_left_out),
    CHECK_TEST(open_calls_of_a_sample_stand_for_others),
    CHECK_TEST(numbers_of_nobody_do_nothing),
    CHECK_TEST(a_window_has_its_own_part_of_them),
    CHECK_TEST(each_process_has_an_end),
};
CHECK_MAIN(tests)
