/* SPDX-License-Identifier: MIT */
/* What a timed call costs, by what a run tells of it: times_cost.c on cells that are made up.  Ticks throughout. */
#include "check.h"
#include "records/times.h"

enum { INSIDE = 10, SEEN = 30, UNIT = 256 };

/* A run with a tree, in which ends saw SEEN a call. */
static hfn_times seen_run(hfn_time_entry *entries, size_t count)
{
    hfn_times t = { .entries = entries, .entry_count = count };

    t.header.flags = HOTFN_TIMING_TIMES | HOTFN_TIMING_TREE;
    t.header.cost_inside_ticks = INSIDE * UNIT;
    t.header.seen_ends = HFN_ENDS_TO_BELIEVE;
    t.header.seen_ticks = SEEN / 2 * t.header.seen_ends;
    return t;
}

/* It worked so long a call itself, was called so often and called others so often; the hooks took what they do. */
static hfn_time_entry function(uint32_t slot, uint64_t work, uint64_t calls, uint64_t callees,
                               uint64_t outside)
{
    return (hfn_time_entry){ .slot = slot,
                             .cell = { .self_ticks = calls * (work + INSIDE) + callees * outside,
                                       .timed_calls = calls,
                                       .callee_timed = callees } };
}

static double outside_of(hfn_times *t)
{
    hfn_times_find_cost(t);
    return t->header.cost_outside_ticks / (double)UNIT;
}

static void what_ends_saw_is_the_cost(void)
{
    hfn_time_entry entries[] = { function(0, 500, 1000, 10000, SEEN - INSIDE),
                                 function(1, 40, 10000, 0, SEEN - INSIDE) };
    hfn_times t = seen_run(entries, 2);

    CHECK(outside_of(&t) > 19.9);
    CHECK(outside_of(&t) < 20.1);
    t.header.unseen_ticks = 4 * UNIT; /* half of it counts */
    CHECK(outside_of(&t) > 21.9);
    CHECK(outside_of(&t) < 22.1);
}

/* Where a call took 12 outside and its caller worked 1 for it, none can have taken 20. */
static void nobody_works_less_than_nothing(void)
{
    hfn_time_entry entries[] = { function(0, 1000, 1000, 1000000, 12),
                                 function(1, 3, 1000000, 0, 12) };
    hfn_times t = seen_run(entries, 2);
    double outside = outside_of(&t);

    CHECK(outside > 13);   /* all of the 1000000 that caller worked */
    CHECK(outside < 13.5); /* and a tenth of what is left, 3000000, below nothing */
}

static void who_waits_says_nothing_of_hooks(void)
{
    hfn_time_entry entries[] = { function(0, 1000, 1000, 1000000, 12),
                                 function(1, 3, 1000000, 0, 12),
                                 function(2, UINT64_C(1) << 40, 1, 1, 12) };
    hfn_times t = seen_run(entries, 3);

    CHECK(outside_of(&t) < 13.5);
}

/* Leaves that are said to cost 2 more than they took are below nothing whatever a call costs their caller: that takes
 * away what they lack, and not all. */
static void a_cost_inside_that_is_too_large_is_made_up_for(void)
{
    hfn_time_entry entries[] = { function(0, 5000000, 1, 1000000, 20),
                                 function(1, 1, 1000000, 0, 20) };
    hfn_times t = seen_run(entries, 2);
    double outside;

    t.header.cost_inside_ticks = (INSIDE + 2) * UNIT;
    t.header.seen_ticks += t.header.seen_ends;
    outside = outside_of(&t);
    CHECK(outside > 14);
    CHECK(outside < 16);
}

static void few_looks_change_nothing(void)
{
    hfn_time_entry entries[] = { function(0, 1000, 1000, 1000000, 12) };
    hfn_times t = seen_run(entries, 1);

    t.header.seen_ends = HFN_ENDS_TO_BELIEVE - 1;
    t.header.cost_outside_ticks = 77 * UNIT;
    CHECK(outside_of(&t) > 76.9);
    CHECK(outside_of(&t) < 77.1);
}

static void without_cells_nothing_is_impossible(void)
{
    hfn_times t = seen_run(NULL, 0);

    CHECK(outside_of(&t) > 19.9);
    t.header.seen_ticks = UINT64_MAX; /* nonsense */
    CHECK(outside_of(&t) > 0);
    t.header.unseen_ticks = INT64_MIN;
    t.header.seen_ticks = 0;
    CHECK(outside_of(&t) <= 0);
}

static const check_test tests[] = {
    CHECK_TEST(what_ends_saw_is_the_cost),
    CHECK_TEST(nobody_works_less_than_nothing),
    CHECK_TEST(who_waits_says_nothing_of_hooks),
    CHECK_TEST(a_cost_inside_that_is_too_large_is_made_up_for),
    CHECK_TEST(few_looks_change_nothing),
    CHECK_TEST(without_cells_nothing_is_impossible),
};
CHECK_MAIN(tests)
