/* SPDX-License-Identifier: MIT */
/* The choice of functions to unhook and to rehook, with invented call counts and no target. */
#include "launch/budget/budget.h"

#include "check.h"

enum { COUNT = 4 };
#define SECOND 1e9
#define STOP 2e6

static hfn_budget_header header;
static hfn_function_budget functions[COUNT];
static uint32_t chosen[COUNT], called[COUNT];
static hfn_budget budget;
static hfn_unpatch_record unpatch_record;

/* A share of 5 %; a call costs 1 ns counted. */
static void begin(void)
{
    memset(functions, 0, sizeof functions);
    header = (hfn_budget_header){ .cpu_ns = 10000000000u };
    budget = (hfn_budget){ .header = &header,
                           .share = 0.05,
                           .count_ns = 1,
                           .timed_ns = 50,
                           .mean = 1,
                           .functions = functions,
                           .function_count = COUNT,
                           .chosen = chosen,
                           .called = called,
                           .called_count = COUNT };
    for (uint32_t i = 0; i < COUNT; i++) {
        functions[i].level = functions[i].closest = HOTFN_BUDGET_COUNTED;
        called[i] = i;
    }
}

static double cost(void)
{
    double sum = 0;

    for (uint32_t i = 0; i < COUNT; i++) {
        sum += hfn_budget_cost(&budget, &functions[i]);
    }
    return sum;
}

/* A counted call, a timed one, and one whose sampling interval is not set yet. */
static void cost_depends_on_level_and_sampling_interval(void)
{
    begin();
    functions[0].calls = 1000;
    CHECK_EQ_U64((uint64_t)cost(), 1000);
    functions[0].closest = functions[0].level = HOTFN_BUDGET_TIMED;
    CHECK_EQ_U64((uint64_t)cost(), 1000);
    functions[0].mean = 1;
    CHECK_EQ_U64((uint64_t)cost(), 51000);
    functions[0].mean = 10;
    CHECK_EQ_U64((uint64_t)cost(), 6000);
    budget.mean = 50; /* the requested sampling interval */
    CHECK_EQ_U64((uint64_t)cost(), 2000);
    functions[0].level = HOTFN_BUDGET_COUNTED;
    CHECK_EQ_U64((uint64_t)cost(), 1000);
    functions[0].level = HOTFN_BUDGET_UNHOOKED;
    CHECK_EQ_U64((uint64_t)cost(), 0);
}

/* A hook that takes nearly all of the time hides the program's own time. */
static void rare_functions_stay_until_the_dominant_one_is_unhooked(void)
{
    begin();
    functions[0].calls = 1000000;
    functions[1].calls = 4000; /* 1/250 */
    functions[2].calls = 1000;
    hfn_budget_choose_unhooked(&budget, 1005000, 100);
    CHECK_EQ_U64(budget.chosen_count, 2);
    CHECK_EQ_U64(functions[1].wanted, HOTFN_BUDGET_UNHOOKED);
    CHECK(functions[2].wanted != HOTFN_BUDGET_UNHOOKED);
    begin();
    functions[2].calls = 1000;
    hfn_budget_choose_unhooked(&budget, 1000, 100);
    CHECK_EQ_U64(functions[2].wanted, HOTFN_BUDGET_UNHOOKED);
}

/* Excess is repaid step by step with up to four fifths of the share, or half of it if functions are
 * never rehooked.  Unused budget is not carried over. */
static void excess_is_repaid_from_later_steps(void)
{
    begin(); /* 10 s of processor time, no cost yet */
    CHECK_EQ_U64((uint64_t)(hfn_budget_allowed(&budget, SECOND) + 0.5), 50000000);
    header.cost_ns = 2000000000; /* 8 s remain, whose budget is 400 ms */
    CHECK_EQ_U64((uint64_t)(hfn_budget_allowed(&budget, SECOND) + 0.5), 10000000);
    budget.never_rehooks = true;
    CHECK_EQ_U64((uint64_t)(hfn_budget_allowed(&budget, SECOND) + 0.5), 25000000);
    header.cost_ns = header.stopped_ns = 510000000; /* stops only: the budget of 10 s is 500 ms */
    CHECK_EQ_U64((uint64_t)(hfn_budget_allowed(&budget, SECOND) + 0.5), 40000000);
}

static void costliest_functions_are_unhooked_until_the_rest_fits(void)
{
    begin();
    functions[0].calls = 10000000;
    functions[1].calls = 500000000;
    functions[2].calls = 30000000; /* up to 37.5 ms may stay hooked */
    functions[3].calls = 40000000;
    hfn_budget_choose_unhooked(&budget, cost(), 0.05 * SECOND);
    CHECK_EQ_U64(budget.chosen_count, 3);
    CHECK_EQ_U64(chosen[0], 1);
    CHECK_EQ_U64(chosen[1], 3);
    CHECK_EQ_U64(chosen[2], 2);
    CHECK_EQ_U64(functions[1].wanted, HOTFN_BUDGET_UNHOOKED);
}

static void fixed_functions_are_not_chosen(void)
{
    begin();
    functions[0].calls = 500000000;
    functions[0].is_fixed = true;
    functions[1].calls = 100000000;
    hfn_budget_choose_unhooked(&budget, cost(), 0.05 * SECOND);
    CHECK_EQ_U64(budget.chosen_count, 1);
    CHECK_EQ_U64(chosen[0], 1);
}

static void unhooked_functions_are_retried_within_the_budget(void)
{
    begin();
    for (uint32_t i = 0; i < 2; i++) {
        functions[i].level = HOTFN_BUDGET_UNHOOKED;
        functions[i].unpatch = &unpatch_record;
        functions[i].rate = 0.5;
    }
    header.cost_ns = 440000000; /* of a budget of about 478 ms */
    hfn_budget_choose_retried(&budget, STOP);
    CHECK_EQ_U64(budget.chosen_count, 2);
    CHECK_EQ_U64(functions[0].wanted, HOTFN_BUDGET_COUNTED);
    budget.chosen_count = 0;
    header.cost_ns = 468000000; /* a trial costs 5 ms, and the stop 2 ms */
    hfn_budget_choose_retried(&budget, STOP);
    CHECK_EQ_U64(budget.chosen_count, 1);
    budget.chosen_count = 0;
    header.cost_ns = 480000000;
    hfn_budget_choose_retried(&budget, STOP);
    CHECK_EQ_U64(budget.chosen_count, 0);
    header.cost_ns = 2 * header.cpu_ns; /* stops took longer than the program */
    header.stopped_ns = header.cost_ns;
    hfn_budget_choose_retried(&budget, STOP);
    CHECK_EQ_U64(budget.chosen_count, 0);
}

static void functions_are_retried_only_after_their_wait(void)
{
    begin();
    functions[2].level = HOTFN_BUDGET_UNHOOKED;
    functions[2].unpatch = &unpatch_record;
    functions[2].retry_ns = header.cpu_ns + 1;
    hfn_budget_choose_retried(&budget, STOP);
    CHECK_EQ_U64(budget.chosen_count, 0);
    header.cpu_ns++;
    hfn_budget_choose_retried(&budget, STOP);
    CHECK_EQ_U64(budget.chosen_count, 1);
    CHECK_EQ_U64(chosen[0], 2);
}

static const check_test tests[] = {
    CHECK_TEST(cost_depends_on_level_and_sampling_interval),
    CHECK_TEST(rare_functions_stay_until_the_dominant_one_is_unhooked),
    CHECK_TEST(excess_is_repaid_from_later_steps),
    CHECK_TEST(costliest_functions_are_unhooked_until_the_rest_fits),
    CHECK_TEST(fixed_functions_are_not_chosen),
    CHECK_TEST(unhooked_functions_are_retried_within_the_budget),
    CHECK_TEST(functions_are_retried_only_after_their_wait),
};
CHECK_MAIN(tests)
