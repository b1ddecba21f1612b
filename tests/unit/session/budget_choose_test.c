/* SPDX-License-Identifier: MIT */
/* Who is watched less closely and who more closely again: made-up functions, no target. */
#include "budget.h"

#include "check.h"

enum { COUNT = 4 };
#define SECOND 1e9

static hotfn_budget_header header;
static hfn_book books[COUNT];
static uint32_t chosen[COUNT];
static hotfn_budget budget;
static hfn_cut out_of_target;

/* A share of 5 %; a call costs 1 ns counted, 2 sampled, 50 timed. */
static void begin(void)
{
    memset(books, 0, sizeof books);
    header = (hotfn_budget_header){ .cpu_ns = 10000000000u };
    budget = (hotfn_budget){ .header = &header,
                             .share = 0.05,
                             .cost_ns = { 0, 50, 2, 1, 0 },
                             .books = books,
                             .book_count = COUNT,
                             .chosen = chosen };
    for (uint32_t i = 0; i < COUNT; i++)
        books[i].level = books[i].closest = HOTFN_BUDGET_COUNTED;
}

static double cost(void)
{
    double sum = 0;

    for (uint32_t i = 0; i < COUNT; i++)
        sum += hfn_budget_cost(&budget, &books[i]);
    return sum;
}

static void the_dearest_go_until_the_rest_fits(void)
{
    begin();
    books[0].calls = 10000000;
    books[1].calls = 500000000;
    books[2].calls = 30000000; /* these two may take 37.5 ms */
    books[3].calls = 40000000;
    hfn_budget_reduce(&budget, cost(), SECOND);
    CHECK_EQ_U64(budget.chosen_count, 3);
    CHECK_EQ_U64(chosen[0], 1);
    CHECK_EQ_U64(chosen[1], 3);
    CHECK_EQ_U64(chosen[2], 2);
    CHECK_EQ_U64(books[1].wanted, HOTFN_BUDGET_UNHOOKED);
}

static void nobody_goes_who_cannot(void)
{
    begin();
    books[0].calls = 500000000;
    books[0].is_fixed = true;
    books[1].calls = 100000000;
    hfn_budget_reduce(&budget, cost(), SECOND);
    CHECK_EQ_U64(budget.chosen_count, 1);
    CHECK_EQ_U64(chosen[0], 1);
    begin();
    budget.is_stuck = true; /* the target cannot be changed */
    books[0].calls = 500000000;
    hfn_budget_reduce(&budget, cost(), SECOND);
    CHECK_EQ_U64(budget.chosen_count, 0);
}

static void a_timed_function_falls_as_far_as_it_must(void)
{
    begin();
    books[0].level = books[0].closest = HOTFN_BUDGET_TIMED;
    books[0].calls = 5000000; /* 250 ms timed, 10 sampled */
    hfn_budget_reduce(&budget, cost(), SECOND);
    CHECK_EQ_U64(books[0].wanted, HOTFN_BUDGET_SAMPLED);
    books[0].calls = 15000000;
    hfn_budget_reduce(&budget, cost(), SECOND);
    CHECK_EQ_U64(books[0].wanted, HOTFN_BUDGET_COUNTED);
    books[0].calls = 150000000;
    hfn_budget_reduce(&budget, cost(), SECOND);
    CHECK_EQ_U64(books[0].wanted, HOTFN_BUDGET_UNHOOKED);
    budget.is_stuck = true;
    hfn_budget_reduce(&budget, cost(), SECOND);
    CHECK_EQ_U64(books[0].wanted, HOTFN_BUDGET_COUNTED);
}

static void what_is_out_is_tried_as_far_as_the_budget_pays(void)
{
    begin();
    for (uint32_t i = 0; i < 2; i++) {
        books[i].level = HOTFN_BUDGET_UNHOOKED;
        books[i].cut = &out_of_target;
        books[i].rate = 0.5;
    }
    header.cost_ns = 440000000; /* of about 478 ms */
    hfn_budget_raise(&budget, 0, SECOND);
    CHECK_EQ_U64(budget.chosen_count, 2);
    CHECK_EQ_U64(books[0].wanted, HOTFN_BUDGET_COUNTED);
    budget.chosen_count = 0;
    header.cost_ns = 468000000; /* one try is 5 ms, and the stop 2 */
    hfn_budget_raise(&budget, 0, SECOND);
    CHECK_EQ_U64(budget.chosen_count, 1);
    budget.chosen_count = 0;
    header.cost_ns = 480000000;
    hfn_budget_raise(&budget, 0, SECOND);
    CHECK_EQ_U64(budget.chosen_count, 0);
    header.cost_ns = 2 * header.cpu_ns; /* stops took longer than the program */
    header.stopped_ns = header.cost_ns;
    hfn_budget_raise(&budget, 0, SECOND);
    CHECK_EQ_U64(budget.chosen_count, 0);
}

static void it_is_tried_after_its_time_only(void)
{
    begin();
    books[2].level = HOTFN_BUDGET_UNHOOKED;
    books[2].cut = &out_of_target;
    books[2].back_ns = header.cpu_ns + 1;
    hfn_budget_raise(&budget, 0, SECOND);
    CHECK_EQ_U64(budget.chosen_count, 0);
    header.cpu_ns++;
    hfn_budget_raise(&budget, 0, SECOND);
    CHECK_EQ_U64(budget.chosen_count, 1);
    CHECK_EQ_U64(chosen[0], 2);
}

static void more_is_timed_again_when_that_is_known_to_fit(void)
{
    begin();
    books[0].closest = HOTFN_BUDGET_TIMED;
    books[0].level = HOTFN_BUDGET_SAMPLED;
    books[0].calls = 100000; /* 5 ms timed */
    hfn_budget_raise(&budget, cost(), SECOND);
    CHECK_EQ_U64(budget.chosen_count, 1);
    CHECK_EQ_U64(books[0].wanted, HOTFN_BUDGET_TIMED);
    budget.chosen_count = 0;
    books[0].calls = 1000000; /* 50 ms */
    hfn_budget_raise(&budget, cost(), SECOND);
    CHECK_EQ_U64(budget.chosen_count, 0);
    books[0].calls = 400000; /* 20 ms would fit, but are more than a quarter of what there is */
    hfn_budget_raise(&budget, cost(), SECOND);
    CHECK_EQ_U64(budget.chosen_count, 0);
}

static const check_test tests[] = {
    CHECK_TEST(the_dearest_go_until_the_rest_fits),
    CHECK_TEST(nobody_goes_who_cannot),
    CHECK_TEST(a_timed_function_falls_as_far_as_it_must),
    CHECK_TEST(what_is_out_is_tried_as_far_as_the_budget_pays),
    CHECK_TEST(it_is_tried_after_its_time_only),
    CHECK_TEST(more_is_timed_again_when_that_is_known_to_fit),
};
CHECK_MAIN(tests)
