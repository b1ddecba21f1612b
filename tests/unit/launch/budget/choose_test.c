/* SPDX-License-Identifier: MIT */
/* Whose hook goes and whose is tried again: made-up functions, no target. */
#include "launch/budget/budget.h"

#include "check.h"

enum { COUNT = 4 };
#define SECOND 1e9
#define STOP 2e6

static hfn_budget_header header;
static hfn_book books[COUNT];
static uint32_t chosen[COUNT], called[COUNT];
static hotfn_budget budget;
static hfn_cut out_of_target;

/* A share of 5 %; a call costs 1 ns counted. */
static void begin(void)
{
    memset(books, 0, sizeof books);
    header = (hfn_budget_header){ .cpu_ns = 10000000000u };
    budget = (hotfn_budget){ .header = &header,
                             .share = 0.05,
                             .count_ns = 1,
                             .timed_ns = 50,
                             .mean = 1,
                             .books = books,
                             .book_count = COUNT,
                             .chosen = chosen,
                             .called = called,
                             .called_count = COUNT };
    for (uint32_t i = 0; i < COUNT; i++) {
        books[i].level = books[i].closest = HOTFN_BUDGET_COUNTED;
        called[i] = i;
    }
}

static double cost(void)
{
    double sum = 0;

    for (uint32_t i = 0; i < COUNT; i++) {
        sum += hfn_budget_cost(&budget, &books[i]);
    }
    return sum;
}

/* Counted, timed one call in so many, and before anybody has said how many. */
static void a_call_costs_what_is_done_at_it(void)
{
    begin();
    books[0].calls = 1000;
    CHECK_EQ_U64((uint64_t)cost(), 1000);
    books[0].closest = books[0].level = HOTFN_BUDGET_TIMED;
    CHECK_EQ_U64((uint64_t)cost(), 1000);
    books[0].mean = 1;
    CHECK_EQ_U64((uint64_t)cost(), 51000);
    books[0].mean = 10;
    CHECK_EQ_U64((uint64_t)cost(), 6000);
    budget.mean = 50; /* no more was asked for */
    CHECK_EQ_U64((uint64_t)cost(), 2000);
    books[0].level = HOTFN_BUDGET_COUNTED;
    CHECK_EQ_U64((uint64_t)cost(), 1000);
    books[0].level = HOTFN_BUDGET_UNHOOKED;
    CHECK_EQ_U64((uint64_t)cost(), 0);
}

/* Where one takes nearly all of the time, little is known of what the program itself takes. */
static void who_costs_far_less_waits_until_the_dear_one_is_gone(void)
{
    begin();
    books[0].calls = 1000000;
    books[1].calls = 4000; /* 1/250 */
    books[2].calls = 1000;
    hfn_budget_reduce(&budget, 1005000, 100);
    CHECK_EQ_U64(budget.chosen_count, 2);
    CHECK_EQ_U64(books[1].wanted, HOTFN_BUDGET_UNHOOKED);
    CHECK(books[2].wanted != HOTFN_BUDGET_UNHOOKED);
    begin();
    books[2].calls = 1000;
    hfn_budget_reduce(&budget, 1000, 100);
    CHECK_EQ_U64(books[2].wanted, HOTFN_BUDGET_UNHOOKED);
}

/* Up to four fifths of the share, half where hooks only go, look by look; what was saved is not spent later on. */
static void what_was_too_much_is_paid_back(void)
{
    begin(); /* about 10 s, of which nothing was taken */
    CHECK_EQ_U64((uint64_t)(hfn_budget_allowed(&budget, SECOND) + 0.5), 50000000);
    header.cost_ns = 2000000000; /* of 8 s it might be 400 ms */
    CHECK_EQ_U64((uint64_t)(hfn_budget_allowed(&budget, SECOND) + 0.5), 10000000);
    budget.only_go = true;
    CHECK_EQ_U64((uint64_t)(hfn_budget_allowed(&budget, SECOND) + 0.5), 25000000);
    header.cost_ns = header.stopped_ns = 510000000; /* all of it stops: of 10 s it might be 500 */
    CHECK_EQ_U64((uint64_t)(hfn_budget_allowed(&budget, SECOND) + 0.5), 40000000);
}

static void the_dearest_go_until_the_rest_fits(void)
{
    begin();
    books[0].calls = 10000000;
    books[1].calls = 500000000;
    books[2].calls = 30000000; /* these two may take 37.5 ms */
    books[3].calls = 40000000;
    hfn_budget_reduce(&budget, cost(), 0.05 * SECOND);
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
    hfn_budget_reduce(&budget, cost(), 0.05 * SECOND);
    CHECK_EQ_U64(budget.chosen_count, 1);
    CHECK_EQ_U64(chosen[0], 1);
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
    hfn_budget_raise(&budget, STOP);
    CHECK_EQ_U64(budget.chosen_count, 2);
    CHECK_EQ_U64(books[0].wanted, HOTFN_BUDGET_COUNTED);
    budget.chosen_count = 0;
    header.cost_ns = 468000000; /* one try is 5 ms, and the stop 2 */
    hfn_budget_raise(&budget, STOP);
    CHECK_EQ_U64(budget.chosen_count, 1);
    budget.chosen_count = 0;
    header.cost_ns = 480000000;
    hfn_budget_raise(&budget, STOP);
    CHECK_EQ_U64(budget.chosen_count, 0);
    header.cost_ns = 2 * header.cpu_ns; /* stops took longer than the program */
    header.stopped_ns = header.cost_ns;
    hfn_budget_raise(&budget, STOP);
    CHECK_EQ_U64(budget.chosen_count, 0);
}

static void it_is_tried_after_its_time_only(void)
{
    begin();
    books[2].level = HOTFN_BUDGET_UNHOOKED;
    books[2].cut = &out_of_target;
    books[2].back_ns = header.cpu_ns + 1;
    hfn_budget_raise(&budget, STOP);
    CHECK_EQ_U64(budget.chosen_count, 0);
    header.cpu_ns++;
    hfn_budget_raise(&budget, STOP);
    CHECK_EQ_U64(budget.chosen_count, 1);
    CHECK_EQ_U64(chosen[0], 2);
}

static const check_test tests[] = {
    CHECK_TEST(a_call_costs_what_is_done_at_it),
    CHECK_TEST(who_costs_far_less_waits_until_the_dear_one_is_gone),
    CHECK_TEST(what_was_too_much_is_paid_back),
    CHECK_TEST(the_dearest_go_until_the_rest_fits),
    CHECK_TEST(nobody_goes_who_cannot),
    CHECK_TEST(what_is_out_is_tried_as_far_as_the_budget_pays),
    CHECK_TEST(it_is_tried_after_its_time_only),
};
CHECK_MAIN(tests)
