/* SPDX-License-Identifier: MIT */
/* Arrays hold what the calls for single elements return; a thread's functions add up to those of
 * the record. */
#include "profile/timed.h"

static hotfn_record *open_story(void)
{
    const char *path = sample_path("timed.hfr");
    hotfn_record *r = NULL;

    free(timed_write(path, 20, 10));
    if (!CHECK_EQ_I64(hotfn_record_open(&r, path, NULL, NULL), HOTFN_OK)) {
        exit(1);
    }
    return r;
}

static void arrays_equal_the_single_elements(void)
{
    hotfn_record *r = open_story();
    hotfn_record_function functions[5];
    hotfn_record_timing timings[5];
    hotfn_record_edge edges[6];

    memset(functions, 0xee, sizeof functions);
    memset(timings, 0xee, sizeof timings);
    memset(edges, 0xee, sizeof edges);
    CHECK_EQ_I64(
        hotfn_record_get_array(r, HOTFN_ARRAY_FUNCTIONS, 0, 5, functions, sizeof functions[0]),
        HOTFN_OK);
    CHECK_EQ_I64(hotfn_record_get_array(r, HOTFN_ARRAY_TIMINGS, 0, 5, timings, sizeof timings[0]),
                 HOTFN_OK);
    CHECK_EQ_I64(hotfn_record_get_array(r, HOTFN_ARRAY_EDGES, 0, 6, edges, sizeof edges[0]),
                 HOTFN_OK);
    for (uint32_t i = 0; i < 5; i++) {
        hotfn_record_function f = HOTFN_RECORD_FUNCTION_INIT;
        hotfn_record_timing t = HOTFN_RECORD_TIMING_INIT;

        hotfn_record_get_function(r, i, &f);
        hotfn_record_get_timing(r, i, &t);
        CHECK(memcmp(&f, &functions[i], sizeof f) == 0);
        CHECK(memcmp(&t, &timings[i], sizeof t) == 0);
    }
    for (uint32_t i = 0; i < 6; i++) {
        hotfn_record_edge e = HOTFN_RECORD_EDGE_INIT;

        hotfn_record_get_edge(r, i, &e);
        CHECK(memcmp(&e, &edges[i], sizeof e) == 0);
    }
    hotfn_record_close(r);
}

static void a_part_of_the_nodes_fits_a_smaller_struct(void)
{
    hotfn_record *r = open_story();
    struct {
        uint32_t size, parent, function, thread;
    } nodes[3];

    memset(nodes, 0xee, sizeof nodes);
    CHECK_EQ_I64(hotfn_record_get_array(r, HOTFN_ARRAY_NODES, 1, 2, nodes, sizeof nodes[0]),
                 HOTFN_OK);
    for (uint32_t i = 0; i < 2; i++) {
        hotfn_record_node n = HOTFN_RECORD_NODE_INIT;

        hotfn_record_get_node(r, i + 1, &n);
        CHECK_EQ_U64(nodes[i].size, sizeof nodes[0]);
        CHECK_EQ_U64(nodes[i].parent, n.parent);
        CHECK_EQ_U64(nodes[i].function, n.function);
    }
    CHECK_EQ_U64(nodes[2].size, 0xeeeeeeee);
    hotfn_record_close(r);
}

static void arrays_that_do_not_exist_are_refused(void)
{
    hotfn_record *r = open_story();
    hotfn_record_function f[6];
    const uint32_t bytes = sizeof f[0];

    memset(f, 0xee, sizeof f);
    CHECK_EQ_I64(hotfn_record_get_array(r, 0, 0, 6, f, bytes), HOTFN_E_NOT_FOUND);
    CHECK_EQ_I64(hotfn_record_get_array(r, 0, 5, UINT32_MAX, f, bytes), HOTFN_E_NOT_FOUND);
    CHECK_EQ_I64(hotfn_record_get_array(r, 0, 6, 0, f, bytes), HOTFN_E_NOT_FOUND);
    CHECK_EQ_I64(hotfn_record_get_array(r, 4, 0, 1, f, bytes), HOTFN_E_OPTION);
    CHECK_EQ_I64(hotfn_record_get_array(r, 0, 0, 1, f, bytes + 8), HOTFN_E_OPTION);
    CHECK_EQ_I64(hotfn_record_get_array(r, 0, 0, 1, f, 12), HOTFN_E_OPTION);
    CHECK_EQ_I64(hotfn_record_get_array(r, 0, 0, 1, f, 0), HOTFN_E_OPTION);
    CHECK_EQ_I64(hotfn_record_get_array(r, 0, 0, 1, NULL, bytes), HOTFN_E_OPTION);
    CHECK_EQ_U64(f[0].size, 0xeeeeeeee);
    CHECK_EQ_I64(hotfn_record_get_array(r, 0, 5, 0, NULL, bytes), HOTFN_OK);
    hotfn_record_close(r);
}

static uint32_t read_thread(const hotfn_record *r, uint32_t thread,
                            hotfn_record_thread_timing out[5])
{
    uint32_t count = 0;

    CHECK_EQ_I64(hotfn_record_get_thread_timings(r, thread, out, sizeof out[0], 5, &count),
                 HOTFN_OK);
    return count;
}

static void functions_of_threads_add_up_to_those_of_the_record(void)
{
    hotfn_record *r = open_story();
    hotfn_record_thread_timing one[5], two[5];

    CHECK_EQ_U64(read_thread(r, 0, one), 3);
    CHECK_EQ_U64(read_thread(r, 1, two), 1); /* gamma only */
    CHECK_EQ_U64(two[0].function, 4);
    CHECK_EQ_U64(two[0].calls, 100);
    CHECK_EQ_U64(two[0].timed_calls, 100);
    CHECK_EQ_U64(two[0].max_ns, 100000);
    CHECK_EQ_U64(two[0].self_error_ns, 100 * 20);
    for (uint32_t i = 0; i < 3; i++) {
        const hotfn_record_thread_timing *other = one[i].function == 4 ? &two[0] : NULL;
        hotfn_record_timing sum = HOTFN_RECORD_TIMING_INIT;

        hotfn_record_get_timing(r, one[i].function, &sum);
        CHECK_EQ_U64(one[i].timing, HOTFN_TIMING_FULL);
        CHECK_EQ_U64(one[i].calls + (other ? other->calls : 0),
                     sample_get(r, one[i].function).calls);
        CHECK_EQ_U64(one[i].total_ns + (other ? other->total_ns : 0), sum.total_ns);
        CHECK_EQ_U64(one[i].self_ns + (other ? other->self_ns : 0), sum.self_ns);
    }
    hotfn_record_close(r);
}

static void functions_of_a_thread_equal_those_of_the_chosen_thread(void)
{
    hotfn_record *r = open_story();
    hotfn_record_thread_timing before[5], after[5];
    uint32_t count = read_thread(r, 1, before);

    CHECK_EQ_I64(hotfn_record_choose_thread(r, 71), HOTFN_OK);
    CHECK_EQ_U64(read_thread(r, 0, after), count);
    CHECK(memcmp(before, after, count * sizeof before[0]) == 0);
    for (uint32_t i = 0; i < count; i++) {
        hotfn_record_timing t = HOTFN_RECORD_TIMING_INIT;

        hotfn_record_get_timing(r, after[i].function, &t);
        CHECK_EQ_U64(after[i].total_ns, t.total_ns);
        CHECK_EQ_U64(after[i].self_ns, t.self_ns);
        CHECK_EQ_U64(after[i].total_error_ns, t.total_error_ns);
        CHECK_EQ_U64(after[i].self_error_ns, t.self_error_ns);
    }
    hotfn_record_close(r);
}

static void the_number_of_a_threads_functions_is_counted_without_room(void)
{
    hotfn_record *r = open_story();
    hotfn_record_thread_timing one = HOTFN_RECORD_THREAD_TIMING_INIT;
    uint32_t count = 99;

    CHECK_EQ_I64(hotfn_record_get_thread_timings(r, 0, NULL, sizeof one, 0, &count), HOTFN_OK);
    CHECK_EQ_U64(count, 3);
    CHECK_EQ_I64(hotfn_record_get_thread_timings(r, 0, &one, sizeof one, 1, &count), HOTFN_OK);
    CHECK_EQ_U64(count, 3);
    CHECK_EQ_U64(one.calls, 1);
    count = 99;
    CHECK_EQ_I64(hotfn_record_get_thread_timings(r, 2, &one, sizeof one, 1, &count),
                 HOTFN_E_NOT_FOUND);
    CHECK_EQ_I64(hotfn_record_get_thread_timings(r, 0, &one, 0, 1, &count), HOTFN_E_OPTION);
    CHECK_EQ_I64(hotfn_record_get_thread_timings(r, 0, NULL, sizeof one, 1, &count),
                 HOTFN_E_OPTION);
    CHECK_EQ_U64(count, 99);
    hotfn_record_close(r);
}

static const check_test tests[] = {
    CHECK_TEST(arrays_equal_the_single_elements),
    CHECK_TEST(a_part_of_the_nodes_fits_a_smaller_struct),
    CHECK_TEST(arrays_that_do_not_exist_are_refused),
    CHECK_TEST(functions_of_threads_add_up_to_those_of_the_record),
    CHECK_TEST(functions_of_a_thread_equal_those_of_the_chosen_thread),
    CHECK_TEST(the_number_of_a_threads_functions_is_counted_without_room),
};
CHECK_MAIN(tests)
