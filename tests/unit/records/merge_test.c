/* SPDX-License-Identifier: MIT */
/* Runs that become one record: what is the same function, whose row is whose, how long it took, and that trees and
 * slow calls of one run do not mix with another's. */
#include "records/timed.h"

static char first[128], second[128], merged[128];

static void name_files(void)
{
    snprintf(first, sizeof first, "%s", sample_path("first.hfr"));
    snprintf(second, sizeof second, "%s", sample_path("second.hfr"));
    snprintf(merged, sizeof merged, "%s", sample_path("merged.hfr"));
}

static hotfn_record *open_at(const char *path)
{
    hotfn_record *record = NULL;
    hotfn_error err = HOTFN_ERROR_INIT;

    if (!CHECK_EQ_I64(hotfn_record_open(&record, path, NULL, &err), HOTFN_OK)) {
        printf("# %s\n", err.text);
        exit(1);
    }
    return record;
}

/* A run that called the function in slot 1 so often, from start to end. */
static void write_run(const char *path, uint64_t calls, uint64_t start_ns, uint64_t end_ns)
{
    hotfn_live *live = sample_live(NULL);
    hotfn_record *record;

    sample_count(live, 0, 70, 70, 1, calls);
    CHECK_EQ_I64(hotfn_live_finish(live, path, HOTFN_RECORD_FINISHED, 0, NULL, NULL, NULL),
                 HOTFN_OK);
    hotfn_live_close(live);
    record = open_at(path);
    hfn_put64(record->header + HFN_AT_START_NS, start_ns);
    hfn_put64(record->header + HFN_AT_END_NS, end_ns);
    CHECK_EQ_I64(hfn_record_write(record, path, NULL), HOTFN_OK);
    hotfn_record_close(record);
}

static hotfn_record *merge(uint32_t mode)
{
    const char *const paths[] = { first, second };

    CHECK_EQ_I64(hotfn_record_merge(paths, 2, merged, mode, NULL, NULL), HOTFN_OK);
    return open_at(merged);
}

static hotfn_record_info info_of(const hotfn_record *record)
{
    hotfn_record_info info = HOTFN_RECORD_INFO_INIT;

    CHECK_EQ_I64(hotfn_record_get_info(record, &info), HOTFN_OK);
    return info;
}

static void a_sum_has_a_row_a_run_and_is_as_long_as_all(void)
{
    hotfn_record_thread row = HOTFN_RECORD_THREAD_INIT;
    hotfn_record *r;

    name_files();
    write_run(first, 10, 5000, 5100);
    write_run(second, 13, 2000, 2300);
    r = merge(HOTFN_MERGE_SUM);
    CHECK_EQ_U64(sample_get(r, 1).calls, 23);
    CHECK_EQ_U64(info_of(r).start_ns, 2000);
    CHECK_EQ_U64(info_of(r).end_ns, 2000 + 400);
    CHECK_EQ_U64(info_of(r).thread_count, 2);
    CHECK_EQ_I64(hotfn_record_get_thread(r, 1, &row), HOTFN_OK);
    CHECK_STR(row.name, "second.hfr");
    CHECK_EQ_U64(row.calls, 13);
    hotfn_record_close(r);
}

static void a_mean_is_rounded_and_as_long_as_one(void)
{
    static const uint32_t modes[] = { HOTFN_MERGE_MEAN, HOTFN_MERGE_MIN, HOTFN_MERGE_MAX };
    static const uint64_t calls[] = { 12, 10, 13 };

    name_files();
    write_run(first, 10, 5000, 5100);
    write_run(second, 13, 2000, 2300);
    for (int i = 0; i < 3; i++) {
        hotfn_record *r = merge(modes[i]);

        CHECK_EQ_U64(sample_get(r, 1).calls, calls[i]);
        CHECK_EQ_U64(info_of(r).end_ns - info_of(r).start_ns, 200);
        CHECK_EQ_U64(info_of(r).thread_count, 1);
        hotfn_record_close(r);
    }
}

/* One module, one function; without an id of the image the path tells modules apart, and the machine. */
static void write_module(const char *path, uint32_t machine, uint32_t state)
{
    hotfn_record_module m = HOTFN_RECORD_MODULE_INIT;
    hotfn_live_options o = HOTFN_LIVE_OPTIONS_INIT;
    hotfn_record_function f = sample_function("f", 0x1000, state);
    hotfn_live *live = NULL;
    uint32_t index;

    o.slot_capacity = 8;
    o.thread_capacity = 2;
    CHECK_EQ_I64(hotfn_live_create(&live, &o, NULL, NULL), HOTFN_OK);
    m.machine = machine;
    m.path = "/opt/library.so";
    m.function_count = 1;
    CHECK_EQ_I64(hotfn_live_add_module(live, &m, &f, &index, NULL), HOTFN_OK);
    if (state == HOTFN_STATE_HOOKED)
        sample_count(live, 0, 70, 70, 0, 4);
    CHECK_EQ_I64(hotfn_live_finish(live, path, HOTFN_RECORD_FINISHED, 0, NULL, NULL, NULL),
                 HOTFN_OK);
    hotfn_live_close(live);
}

static void one_path_for_two_machines_is_two_modules(void)
{
    hotfn_record *r;

    name_files();
    write_module(first, HOTFN_MACHINE_X86_64, HOTFN_STATE_HOOKED);
    write_module(second, HOTFN_MACHINE_X86, HOTFN_STATE_HOOKED);
    r = merge(HOTFN_MERGE_SUM);
    CHECK_EQ_U64(info_of(r).module_count, 2);
    CHECK_EQ_U64(sample_get(r, 0).calls, 4);
    hotfn_record_close(r);
    write_module(second, HOTFN_MACHINE_X86_64, HOTFN_STATE_HOOKED);
    r = merge(HOTFN_MERGE_SUM);
    CHECK_EQ_U64(info_of(r).module_count, 1);
    CHECK_EQ_U64(sample_get(r, 0).calls, 8);
    hotfn_record_close(r);
}

static void what_one_run_refused_and_another_counted_is_counted(void)
{
    hotfn_record *r;

    name_files();
    write_module(first, HOTFN_MACHINE_X86_64, HOTFN_STATE_REFUSED);
    write_module(second, HOTFN_MACHINE_X86_64, HOTFN_STATE_HOOKED);
    r = merge(HOTFN_MERGE_SUM);
    CHECK_EQ_U64(sample_get(r, 0).counted, 1);
    CHECK_EQ_U64(sample_get(r, 0).calls, 4);
    hotfn_record_close(r);
}

static void trees_and_slow_calls_stay_with_their_run(void)
{
    hotfn_record_time_info info = HOTFN_RECORD_TIME_INFO_INIT;
    hotfn_record *r;
    uint32_t children = 0;

    name_files();
    free(timed_write(first, 20, 10));
    free(timed_write(second, 20, 10));
    r = merge(HOTFN_MERGE_SUM);
    hotfn_record_get_time_info(r, &info);
    for (uint32_t i = 0; i < info.node_count; i++) {
        hotfn_record_node n = HOTFN_RECORD_NODE_INIT, parent = HOTFN_RECORD_NODE_INIT;

        hotfn_record_get_node(r, i, &n);
        if (n.parent == HOTFN_NO_NODE)
            continue;
        hotfn_record_get_node(r, n.parent, &parent);
        CHECK_EQ_U64(parent.thread, n.thread);
        children += n.thread == 1;
    }
    CHECK(children > 0 && info.slow_count > 0);
    for (uint32_t i = 0; i < info.slow_count; i++) {
        hotfn_record_slow_call s = HOTFN_RECORD_SLOW_CALL_INIT;
        hotfn_record_node n = HOTFN_RECORD_NODE_INIT;

        hotfn_record_get_slow_call(r, i, &s);
        if (s.node == HOTFN_NO_NODE)
            continue;
        hotfn_record_get_node(r, s.node, &n);
        CHECK_EQ_U64(n.function, s.function);
        CHECK_EQ_U64(n.thread, s.thread);
    }
    hotfn_record_close(r);
}

static void a_merge_takes_so_many(void)
{
    static const char *paths[4097];

    name_files();
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        paths[i] = "/none";
    CHECK_EQ_I64(hotfn_record_merge(paths, 4097, merged, 0, NULL, NULL), HOTFN_E_OPTION);
    CHECK_EQ_I64(hotfn_record_merge(paths, 4096, merged, 0, NULL, NULL), HOTFN_E_IO);
    CHECK_EQ_I64(hotfn_record_merge(paths, 0, merged, 0, NULL, NULL), HOTFN_E_OPTION);
}

static const check_test tests[] = {
    CHECK_TEST(a_sum_has_a_row_a_run_and_is_as_long_as_all),
    CHECK_TEST(a_mean_is_rounded_and_as_long_as_one),
    CHECK_TEST(one_path_for_two_machines_is_two_modules),
    CHECK_TEST(what_one_run_refused_and_another_counted_is_counted),
    CHECK_TEST(trees_and_slow_calls_stay_with_their_run),
    CHECK_TEST(a_merge_takes_so_many),
};
CHECK_MAIN(tests)
