/* SPDX-License-Identifier: MIT */
/* How many calls of each function the budget lets be timed: the functions are invented, in a live
 * record without a target. */
#include "launch/budget/budget.h"

#include "live/live.h"

#include "check.h"

enum { COUNT = 6, OFTEN = 100000, MEAN_OF_NONE = 1000000 };
#define MS 1e6
#define LOOK 10e6 /* nanoseconds from one look to the next */

typedef struct scene {
    hfn_live *live;
    hfn_budget_header *header;
    hfn_function_budget functions[COUNT];
    uint32_t called[COUNT];
    hfn_budget budget;
} scene;

/* A timed call costs 50 ns. */
static void begin(scene *s, uint32_t asked)
{
    hfn_live_options o = { 0 };

    memset(s, 0, sizeof *s);
    o.slot_capacity = COUNT;
    o.thread_capacity = 2;
    o.string_bytes = 1 << 16;
    o.budget_ppm = 50000;
    o.timing = HOTFN_TIMING_TIMES | HOTFN_TIMING_SAMPLED;
    o.sample_mean = asked;
    CHECK_EQ_I64(hfn_live_create(&s->live, &o, NULL, NULL), HOTFN_OK);
    hfn_live_cell_header(s->live)->cells_used = 1;
    s->header = hfn_live_get_budget(s->live);
    s->header->cpu_ns = 10000000000u;
    s->budget = (hfn_budget){ .live = s->live,
                              .header = s->header,
                              .share = 0.05,
                              .count_ns = 1,
                              .timed_ns = 50,
                              .means = hfn_live_get_means(s->live),
                              .mean = asked,
                              .functions = s->functions,
                              .function_count = COUNT,
                              .called = s->called,
                              .called_count = COUNT };
    for (uint32_t i = 0; i < COUNT; i++) {
        s->functions[i].level = s->functions[i].closest = HOTFN_BUDGET_TIMED;
        s->functions[i].function = i;
        s->called[i] = i;
    }
}

static void end(scene *s)
{
    hfn_live_close(s->live);
}

/* One step of the budget, after an interval in which each function was called as often as its
 * `calls` says. */
static void look(scene *s, double allowed, bool is_over)
{
    s->header->cpu_ns += 10 * HFN_BUDGET_MS;
    hfn_budget_set_intervals(&s->budget, allowed, is_over, LOOK);
    for (uint32_t i = 0; i < COUNT; i++) {
        s->functions[i].last += s->functions[i].calls;
    }
}

static double timing_cost(const scene *s)
{
    double sum = 0;

    for (uint32_t i = 0; i < COUNT; i++) {
        sum += hfn_budget_cost(&s->budget, &s->functions[i]) - (double)s->functions[i].calls;
    }
    return sum;
}

static hfn_time_state *state_of(const scene *s, uint32_t row)
{
    hfn_time_memory memory;

    hfn_live_time_memory(s->live, &memory);
    return (void *)(s->live->rows + (uint64_t)row * s->live->layout.row_bytes + memory.thread_at);
}

static void add_timed_calls(const scene *s, uint32_t row, uint64_t calls)
{
    state_of(s, row)->timed += calls;
}

static void a_timed_call_costs_what_was_measured_at_the_start(void)
{
    enum { OWN_PID = 77, TICKS = 2 }; /* in a nanosecond */
    scene s;
    hfn_time_header *h;

    begin(&s, 1);
    h = hfn_live_time_header(s.live);
    h->ticks_per_second = TICKS * 1000000000u;
    h->cost_inside_ticks = 40 * 256;
    h->cost_outside_ticks = 20 * 256;
    hfn_live_cell_header(s.live)->cells_used = 2;
    hfn_live_cells(s.live)[0].pid = OWN_PID;
    hfn_live_cells(s.live)[1].pid = OWN_PID + 1; /* a fork's child */
    add_timed_calls(&s, 1, 10);
    CHECK_EQ_U64((uint64_t)hfn_budget_get_timing_cost(&s.budget, OWN_PID), 0);
    CHECK_EQ_U64((uint64_t)s.budget.timed_ns, 30);
    add_timed_calls(&s, 0, 100);
    CHECK_EQ_U64((uint64_t)hfn_budget_get_timing_cost(&s.budget, OWN_PID), 3000);
    CHECK_EQ_U64(s.header->time_cost_ps, 31000); /* it is counted too */
    CHECK_EQ_U64((uint64_t)hfn_budget_get_timing_cost(&s.budget, OWN_PID), 0);
    hfn_live_cells(s.live)[0].pid = OWN_PID + 1; /* another process took the row over */
    CHECK_EQ_U64((uint64_t)hfn_budget_get_timing_cost(&s.budget, OWN_PID), 0);
    s.budget.means = NULL; /* a run that only counts */
    CHECK_EQ_U64((uint64_t)hfn_budget_get_timing_cost(&s.budget, OWN_PID + 1), 0);
    end(&s);
}

static void all_are_timed_if_that_is_allowed(void)
{
    scene s;

    begin(&s, 1);
    for (uint32_t i = 0; i < COUNT; i++) {
        s.functions[i].calls = 2000; /* 100 us each */
    }
    look(&s, 0.6 * MS, false);
    for (uint32_t i = 0; i < COUNT; i++) {
        CHECK_EQ_U64(s.budget.means[i], 1);
        CHECK_EQ_U64(s.functions[i].level, HOTFN_BUDGET_TIMED);
    }
    CHECK_EQ_U64(s.header->change_count, 0);
    end(&s);
}

/* The whole allowance is used, and functions that need less lose nothing to others. */
static void what_is_allowed_is_shared_fairly_and_used(void)
{
    scene s;

    begin(&s, 1);
    for (uint32_t i = 0; i < COUNT; i++) {
        s.functions[i].calls = i < 3 ? 2000 : OFTEN << i; /* 100 us; 40 ms and more */
    }
    look(&s, 3.3 * MS, false);
    for (uint32_t i = 0; i < COUNT; i++) {
        double takes = hfn_budget_cost(&s.budget, &s.functions[i]) - (double)s.functions[i].calls;
        CHECK_EQ_U64(s.functions[i].level, i < 3 ? HOTFN_BUDGET_TIMED : HOTFN_BUDGET_SAMPLED);
        CHECK(i < 3 ? s.budget.means[i] == 1 : takes > 0.95 * MS && takes <= MS);
    }
    CHECK(timing_cost(&s) > 3.1 * MS && timing_cost(&s) <= 3.3 * MS);
    CHECK_EQ_U64(s.header->change_count, 3);
    end(&s);
}

static void where_nothing_is_allowed_calls_are_counted(void)
{
    scene s;

    begin(&s, 1);
    s.functions[0].calls = OFTEN;
    look(&s, -MS, true);
    CHECK_EQ_U64(s.budget.means[0], MEAN_OF_NONE);
    CHECK_EQ_U64(s.functions[0].level, HOTFN_BUDGET_COUNTED);
    end(&s);
}

/* The target itself decides which of a function's first calls are timed. */
static void a_function_that_begins_keeps_its_interval(void)
{
    scene s;

    begin(&s, 1);
    s.functions[0].calls = 1000;
    look(&s, 0.001 * MS, true);
    CHECK_EQ_U64(s.budget.means[0], 0);
    CHECK_EQ_U64(s.header->change_count, 0);
    look(&s, 0.001 * MS, true);
    CHECK(s.budget.means[0] > 1);
    end(&s);
}

/* Fewer calls are timed as soon as hooks cost too much; more only after a while, and only if hooks
 * cost far less than is allowed. */
static void fewer_are_timed_at_once_and_more_after_a_while(void)
{
    scene s;
    uint32_t first;

    begin(&s, 1);
    s.functions[0].calls = OFTEN; /* 5 ms */
    look(&s, MS, false);
    first = s.budget.means[0];
    CHECK_EQ_U64(first, 6);
    s.functions[0].calls = 10 * OFTEN;
    look(&s, MS, false);
    CHECK_EQ_U64(s.budget.means[0], first); /* the whole run is within the budget */
    look(&s, MS, true);
    CHECK_EQ_U64(s.budget.means[0], 51);
    s.functions[0].calls = 1000;
    look(&s, MS, false);
    CHECK_EQ_U64(s.budget.means[0], 51);
    s.header->cpu_ns += HFN_BUDGET_MIN_WAIT_NS;
    look(&s, MS, true);
    CHECK_EQ_U64(s.budget.means[0], 51);
    look(&s, MS, false);
    CHECK_EQ_U64(s.budget.means[0], 1);
    CHECK_EQ_U64(s.functions[0].level, HOTFN_BUDGET_TIMED);
    end(&s);
}

/* A function that was not called for a while gets the slow start again, so that calls in a later
 * phase do not exceed the budget before the first step sees them. */
static void a_function_that_paused_begins_slowly_again(void)
{
    scene s;

    begin(&s, 1);
    s.functions[0].calls = 2000;
    look(&s, MS, false);
    CHECK_EQ_U64(s.budget.means[0], 1);
    s.functions[0].calls = 0;
    look(&s, MS, false);
    CHECK_EQ_U64(s.budget.means[0], 1);
    s.header->cpu_ns += 1000 * HFN_BUDGET_MS;
    look(&s, MS, false);
    CHECK_EQ_U64(s.budget.means[0], 0);
    CHECK_EQ_U64(s.header->change_count, 0);
    end(&s);
}

static void no_more_is_timed_than_was_asked(void)
{
    scene s;

    begin(&s, 32);
    s.functions[0].calls = 32 * 2000; /* 100 us, as asked */
    s.functions[1].calls = 32 * 40000;
    look(&s, MS, false);
    CHECK_EQ_U64(s.budget.means[0], 1); /* as it would be without a budget */
    CHECK_EQ_U64(s.functions[0].level, HOTFN_BUDGET_TIMED);
    CHECK_EQ_U64(s.budget.means[1], 72);
    CHECK_EQ_U64(s.functions[1].level, HOTFN_BUDGET_SAMPLED);
    end(&s);
}

/* Without a stub, or with a stub that only counts, no interval is set. */
static void a_function_that_is_not_timed_gets_no_interval(void)
{
    scene s;

    begin(&s, 1);
    s.functions[0].level = HOTFN_BUDGET_UNHOOKED;
    s.functions[1].level = s.functions[1].closest = HOTFN_BUDGET_COUNTED;
    s.functions[0].calls = s.functions[1].calls = OFTEN;
    look(&s, 0.001 * MS, true);
    CHECK_EQ_U64(s.budget.means[0], 0);
    CHECK_EQ_U64(s.budget.means[1], 0);
    hfn_budget_stop_timing(&s.budget, 0);
    hfn_budget_stop_timing(&s.budget, 1);
    CHECK_EQ_U64(s.budget.means[0], MEAN_OF_NONE); /* used when it is timed again */
    CHECK_EQ_U64(s.budget.means[1], 0);
    end(&s);
}

static const check_test tests[] = {
    CHECK_TEST(a_timed_call_costs_what_was_measured_at_the_start),
    CHECK_TEST(all_are_timed_if_that_is_allowed),
    CHECK_TEST(what_is_allowed_is_shared_fairly_and_used),
    CHECK_TEST(where_nothing_is_allowed_calls_are_counted),
    CHECK_TEST(a_function_that_begins_keeps_its_interval),
    CHECK_TEST(fewer_are_timed_at_once_and_more_after_a_while),
    CHECK_TEST(a_function_that_paused_begins_slowly_again),
    CHECK_TEST(no_more_is_timed_than_was_asked),
    CHECK_TEST(a_function_that_is_not_timed_gets_no_interval),
};
CHECK_MAIN(tests)
