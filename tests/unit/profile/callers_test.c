/* SPDX-License-Identifier: MIT */
/* The callers of a function and the sort keys, on the record of a modelled program. */
#include "profile/timed.h"

static hotfn_record *open_story(void)
{
    const char *path = sample_path("callers.hfr");
    hotfn_record *r = NULL;

    free(timed_write(path, 20, 10));
    if (!CHECK_EQ_I64(hotfn_record_open(&r, path, NULL, NULL), HOTFN_OK)) {
        exit(1);
    }
    return r;
}

static hotfn_record *open_counted(void)
{
    const char *path = sample_path("counted.hfr");
    hfn_live *live = sample_live(NULL);
    hotfn_record *r = NULL;

    sample_count(live, 0, 70, 70, 1, 5);
    CHECK_EQ_I64(hfn_live_finish(live, path, HOTFN_RECORD_FINISHED, 0, NULL, NULL, NULL), HOTFN_OK);
    hfn_live_close(live);
    if (!CHECK_EQ_I64(hotfn_record_open(&r, path, NULL, NULL), HOTFN_OK)) {
        exit(1);
    }
    return r;
}

static uint32_t count_edges_to(const hotfn_record *r, uint32_t function)
{
    hotfn_record_edge e = HOTFN_RECORD_EDGE_INIT;
    uint32_t count = 0;

    for (uint32_t i = 0; hotfn_record_get_edge(r, i, &e) == HOTFN_OK; i++) {
        count += e.callee == function;
    }
    return count;
}

static void check_callers_of(const hotfn_record *r, uint32_t function)
{
    uint32_t count = hotfn_record_get_caller_count(r, function);
    uint64_t sum = 0, previous = UINT64_MAX;
    hotfn_record_caller c = HOTFN_RECORD_CALLER_INIT;

    CHECK_EQ_U64(count, count_edges_to(r, function));
    for (uint32_t i = 0; i < count; i++) {
        CHECK_EQ_I64(hotfn_record_get_caller(r, function, i, &c), HOTFN_OK);
        CHECK(c.calls <= previous);
        CHECK(c.function == HOTFN_NO_FUNCTION || c.function < 5);
        previous = c.calls;
        sum += c.calls;
    }
    CHECK_EQ_U64(sum, sample_get(r, function).calls);
    CHECK_EQ_I64(hotfn_record_get_caller(r, function, count, &c), HOTFN_E_NOT_FOUND);
}

static void calls_of_all_callers_sum_up_to_the_calls_of_the_function(void)
{
    hotfn_record *r = open_story();

    CHECK(hotfn_record_get_caller_count(r, 4) > 1); /* gamma */
    for (uint32_t i = 0; i < 5; i++) {
        check_callers_of(r, i);
    }
    CHECK_EQ_I64(hotfn_record_choose_thread(r, 71), HOTFN_OK);
    for (uint32_t i = 0; i < 5; i++) {
        check_callers_of(r, i);
    }
    hotfn_record_close(r);
}

static void callers_past_the_end_are_not_found(void)
{
    hotfn_record *r = open_story();
    hotfn_record_caller c = HOTFN_RECORD_CALLER_INIT;

    CHECK_EQ_U64(hotfn_record_get_caller_count(r, 5), 0);
    CHECK_EQ_U64(hotfn_record_get_caller_count(r, HOTFN_NO_FUNCTION), 0);
    CHECK_EQ_U64(hotfn_record_get_caller_count(NULL, 0), 0);
    CHECK_EQ_I64(hotfn_record_get_caller(r, 5, 0, &c), HOTFN_E_NOT_FOUND);
    CHECK_EQ_I64(hotfn_record_get_caller(r, 2, 0, &c), HOTFN_E_NOT_FOUND); /* it is not counted */
    CHECK_EQ_I64(hotfn_record_get_caller(r, 4, UINT32_MAX, &c), HOTFN_E_NOT_FOUND);
    CHECK_EQ_I64(hotfn_record_get_caller(NULL, 4, 0, &c), HOTFN_E_OPTION);
    CHECK_EQ_I64(hotfn_record_get_caller(r, 4, 0, NULL), HOTFN_E_OPTION);
    hotfn_record_close(r);
    r = open_counted();
    CHECK_EQ_U64(hotfn_record_get_caller_count(r, 1), 0);
    CHECK_EQ_I64(hotfn_record_get_caller(r, 1, 0, &c), HOTFN_E_NOT_FOUND);
    hotfn_record_close(r);
}

static uint64_t get_key(const hotfn_record *r, uint32_t function, uint32_t by)
{
    hotfn_record_timing t = HOTFN_RECORD_TIMING_INIT;

    CHECK_EQ_I64(hotfn_record_get_timing(r, function, &t), HOTFN_OK);
    return by == HOTFN_BY_CALLS   ? sample_get(r, function).calls
           : by == HOTFN_BY_TOTAL ? t.total_ns
           : by == HOTFN_BY_MAX   ? t.max_ns
           : by == HOTFN_BY_ALLOC ? t.self_alloc.allocated_bytes
                                  : t.self_ns;
}

static void sort_orders_functions_by_each_key(void)
{
    hotfn_record *r = open_story();
    uint32_t order[6];

    for (uint32_t by = HOTFN_BY_DEFAULT; by <= HOTFN_BY_ALLOC; by++) {
        uint32_t seen = 0;

        CHECK_EQ_I64(hotfn_record_sort(r, by, order, 5), HOTFN_OK);
        for (uint32_t i = 0; i < 5; i++) {
            seen |= 1u << order[i];
            CHECK(i == 0 || get_key(r, order[i - 1], by) >= get_key(r, order[i], by));
        }
        CHECK_EQ_U64(seen, 31);
    }
    CHECK_EQ_I64(hotfn_record_sort(r, HOTFN_BY_NAME, order, 5), HOTFN_OK);
    for (uint32_t i = 1; i < 5; i++) {
        CHECK(strcmp(sample_get(r, order[i - 1]).name, sample_get(r, order[i]).name) < 0);
    }
    order[0] = order[1] = UINT32_MAX;
    CHECK_EQ_I64(hotfn_record_sort(r, HOTFN_BY_NAME, order, 1), HOTFN_OK);
    CHECK(order[0] < 5 && order[1] == UINT32_MAX); /* the capacity is respected */
    CHECK_EQ_I64(hotfn_record_sort(r, HOTFN_BY_NAME, NULL, 0), HOTFN_OK);
    CHECK_EQ_I64(hotfn_record_sort(r, HOTFN_BY_NAME, order, 6), HOTFN_OK);
    CHECK_EQ_U64(order[5], HOTFN_NO_FUNCTION);
    hotfn_record_close(r);
}

static void sort_refuses_keys_that_the_run_did_not_record(void)
{
    hotfn_record *r = open_counted();
    uint32_t order[5] = { 9, 9, 9, 9, 9 };

    for (uint32_t by = HOTFN_BY_SELF; by <= HOTFN_BY_ALLOC; by++) {
        CHECK_EQ_I64(hotfn_record_sort(r, by, order, 5), HOTFN_E_UNSUPPORTED);
    }
    CHECK_EQ_I64(hotfn_record_sort(r, HOTFN_BY_NAME + 1, order, 5), HOTFN_E_OPTION);
    CHECK_EQ_I64(hotfn_record_sort(r, HOTFN_BY_CALLS, NULL, 5), HOTFN_E_OPTION);
    CHECK_EQ_I64(hotfn_record_sort(NULL, HOTFN_BY_CALLS, order, 5), HOTFN_E_OPTION);
    CHECK_EQ_U64(order[0], 9);
    CHECK_EQ_I64(hotfn_record_sort(r, HOTFN_BY_DEFAULT, order, 5), HOTFN_OK);
    CHECK_EQ_U64(order[0], 1);
    hotfn_record_close(r);
}

static const check_test tests[] = {
    CHECK_TEST(calls_of_all_callers_sum_up_to_the_calls_of_the_function),
    CHECK_TEST(callers_past_the_end_are_not_found),
    CHECK_TEST(sort_orders_functions_by_each_key),
    CHECK_TEST(sort_refuses_keys_that_the_run_did_not_record),
};
CHECK_MAIN(tests)
