/* SPDX-License-Identifier: MIT */
/* Several runs are merged into one record: which functions are the same, which rows belong to which
 * run, and the times; call trees and slow calls of different runs are not mixed. */
#include "profile/timed.h"

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

/* A run from start_ns to end_ns that called the function in slot 1 `calls` times. */
static void write_run(const char *path, uint64_t calls, uint64_t start_ns, uint64_t end_ns)
{
    hfn_live *live = sample_live(NULL);
    hotfn_record *record;

    sample_count(live, 0, 70, 70, 1, calls);
    CHECK_EQ_I64(hfn_live_finish(live, path, HOTFN_RECORD_FINISHED, 0, NULL, NULL, NULL), HOTFN_OK);
    hfn_live_close(live);
    record = open_at(path);
    hfn_write_le64(record->header + HFN_AT_START_NS, start_ns);
    hfn_write_le64(record->header + HFN_AT_END_NS, end_ns);
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

static void a_sum_has_one_row_for_each_run_and_the_time_of_all(void)
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

static void a_mean_is_rounded_and_has_the_mean_time(void)
{
    static const uint32_t modes[] = {
        HOTFN_MERGE_MEAN,   HOTFN_MERGE_MIN, HOTFN_MERGE_MAX,
        HOTFN_MERGE_MEDIAN, HOTFN_MERGE_P95, HOTFN_MERGE_MEAN_CALLED
    };
    static const uint64_t calls[] = { 12, 10, 13, 12, 13, 12 };

    name_files();
    write_run(first, 10, 5000, 5100);
    write_run(second, 13, 2000, 2300);
    for (int i = 0; i < 6; i++) {
        hotfn_record *r = merge(modes[i]);

        CHECK_EQ_U64(sample_get(r, 1).calls, calls[i]);
        CHECK_EQ_U64(info_of(r).end_ns - info_of(r).start_ns, 200);
        CHECK_EQ_U64(info_of(r).thread_count, 1);
        hotfn_record_close(r);
    }
}

/* Five runs, of which one did not call the function, and 21, of which the last two called it
 * most. */
static void ranks_are_over_all_runs(void)
{
    static const struct {
        uint32_t runs, mode;
        uint64_t calls;
    } rows[] = { { 5, HOTFN_MERGE_MEDIAN, 20 },      { 5, HOTFN_MERGE_P95, 40 },
                 { 5, HOTFN_MERGE_MEAN_CALLED, 25 }, { 4, HOTFN_MERGE_MEDIAN, 15 },
                 { 21, HOTFN_MERGE_P95, 1000 },      { 21, HOTFN_MERGE_MEDIAN, 50 },
                 { 21, HOTFN_MERGE_MAX, 2000 } };
    static const uint64_t calls[21] = { 40, 0,  10, 20, 30, 50, 50, 50, 50,   50,  50,
                                        50, 50, 50, 50, 50, 50, 50, 50, 1000, 2000 };
    static char names[21][16];
    const char *paths[21];

    name_files();
    for (uint32_t i = 0; i < 21; i++) {
        snprintf(names[i], sizeof names[i], "rank%u.hfr", i);
        paths[i] = names[i];
        write_run(names[i], calls[i], 1000, 2000);
    }
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        hotfn_record *r;

        CHECK_EQ_I64(hotfn_record_merge(paths, rows[i].runs, merged, rows[i].mode, NULL, NULL),
                     HOTFN_OK);
        r = open_at(merged);
        CHECK_EQ_U64(sample_get(r, 1).calls, rows[i].calls);
        hotfn_record_close(r);
    }
    for (uint32_t i = 0; i < 21; i++) {
        remove(names[i]);
    }
    CHECK_EQ_I64(hotfn_record_merge(paths, 2, merged, HOTFN_MERGE_MEAN_CALLED + 1, NULL, NULL),
                 HOTFN_E_OPTION);
}

/* One module, one function; without an image id, modules differ by path and
 * machine. */
static void write_module(const char *path, uint32_t machine, uint32_t state)
{
    hotfn_record_module m = HOTFN_RECORD_MODULE_INIT;
    hfn_live_options o = { 0 };
    hotfn_record_function f = sample_function("f", 0x1000, state);
    hfn_live *live = NULL;
    uint32_t index;

    o.slot_capacity = 8;
    o.thread_capacity = 2;
    CHECK_EQ_I64(hfn_live_create(&live, &o, NULL, NULL), HOTFN_OK);
    m.machine = machine;
    m.path = "/opt/library.so";
    m.function_count = 1;
    CHECK_EQ_I64(hfn_live_add_module(live, &m, &f, &index, NULL), HOTFN_OK);
    if (state == HOTFN_STATE_HOOKED) {
        sample_count(live, 0, 70, 70, 0, 4);
    }
    CHECK_EQ_I64(hfn_live_finish(live, path, HOTFN_RECORD_FINISHED, 0, NULL, NULL, NULL), HOTFN_OK);
    hfn_live_close(live);
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

enum { REASONS = 200 };

/* A module of functions that were refused for as many reasons, then a function with 4 calls. */
static void write_reasons(const char *path, const char *library)
{
    static char names[REASONS][24];
    static hotfn_record_function f[REASONS];
    hotfn_record_module m = HOTFN_RECORD_MODULE_INIT;
    hfn_live_options o = { 0 };
    hfn_live *live = NULL;
    uint32_t index;

    o.slot_capacity = 8;
    o.function_capacity = REASONS + 1;
    o.thread_capacity = 2;
    CHECK_EQ_I64(hfn_live_create(&live, &o, NULL, NULL), HOTFN_OK);
    for (uint32_t i = 0; i < REASONS; i++) {
        snprintf(names[i], sizeof names[i], "%s-%u", library, i);
        f[i] = sample_function("f", 16 * i, HOTFN_STATE_REFUSED);
        f[i].reason = names[i];
    }
    m.path = library;
    m.function_count = REASONS;
    CHECK_EQ_I64(hfn_live_add_module(live, &m, f, &index, NULL), HOTFN_OK);
    m.path = "last";
    m.function_count = 1;
    f[0] = sample_function("counted", 0, HOTFN_STATE_HOOKED);
    CHECK_EQ_I64(hfn_live_add_module(live, &m, f, &index, NULL), HOTFN_OK);
    sample_count(live, 0, 70, 70, 0, 4);
    CHECK_EQ_I64(hfn_live_finish(live, path, HOTFN_RECORD_FINISHED, 0, NULL, NULL, NULL), HOTFN_OK);
    hfn_live_close(live);
}

/* Otherwise a module would be missing, and later counts would be shown for other functions. */
static void more_reasons_than_a_record_holds_are_an_error(void)
{
    const char *const paths[] = { first, second };
    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_record *r;

    name_files();
    write_reasons(first, "a");
    write_reasons(second, "a");
    r = merge(HOTFN_MERGE_SUM);
    CHECK_EQ_U64(sample_get(r, REASONS).calls, 8);
    hotfn_record_close(r);
    write_reasons(second, "b");
    CHECK_EQ_I64(hotfn_record_merge(paths, 2, merged, HOTFN_MERGE_SUM, NULL, &err), HOTFN_E_LIMIT);
    CHECK(strstr(err.text, "reasons") != NULL);
    CHECK_STR(err.file, "b");
}

static void a_function_that_one_run_refused_and_another_counted_is_counted(void)
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
        if (n.parent == HOTFN_NO_NODE) {
            continue;
        }
        hotfn_record_get_node(r, n.parent, &parent);
        CHECK_EQ_U64(parent.thread, n.thread);
        children += n.thread == 1;
    }
    CHECK(children > 0 && info.slow_count > 0);
    for (uint32_t i = 0; i < info.slow_count; i++) {
        hotfn_record_slow_call s = HOTFN_RECORD_SLOW_CALL_INIT;
        hotfn_record_node n = HOTFN_RECORD_NODE_INIT;

        hotfn_record_get_slow_call(r, i, &s);
        if (s.node == HOTFN_NO_NODE) {
            continue;
        }
        hotfn_record_get_node(r, s.node, &n);
        CHECK_EQ_U64(n.function, s.function);
        CHECK_EQ_U64(n.thread, s.thread);
    }
    hotfn_record_close(r);
}

/* ---- Times. */

/* A run of three functions with these cells, and `odd` values in its header that are not zero. */
static void write_times(const char *path, const hfn_time_cell cells[3], uint32_t odd)
{
    timed_model *m = calloc(1, sizeof *m);
    hotfn_record *r;
    hfn_part *states;

    for (uint32_t s = 0; s < 3; s++) {
        m->cells[0][s] = cells[s];
        m->calls[0][s] = cells[s].timed_calls;
    }
    timed_write_counts(path, m, 1);
    r = open_at(path);
    timed_fill(&r->times, m, 1);
    states = &r->parts[HFN_SECTION_TIMING_STATES];
    states->byte_count = (uint64_t)r->function_count * sizeof(uint32_t);
    states->bytes = hfn_allocate_zeroed(&r->env, states->byte_count + 2);
    for (uint32_t i = 0; i < r->function_count; i++) {
        hfn_write_le32(states->bytes + 4 * i,
                       HOTFN_TIMING_SAMPLE); /* estimates, or there are no errors */
    }
    r->times.header.flags = HOTFN_TIMING_TIMES | HOTFN_TIMING_ERRORS;
    r->times.header.abandoned_exits = odd;
    r->times.header.clock_went_back = 2 * odd;
    r->times.header.nodes_merged = 3 * odd;
    r->times.header.sample_mean = odd == 2 ? 7 : 5;
    CHECK(hfn_times_validate(&r->times, r->slot_count, r->thread_count));
    CHECK_EQ_I64(hfn_record_write(r, path, NULL), HOTFN_OK);
    hotfn_record_close(r);
    free(m);
}

#define TIMES(total, self, calls, max, error, self_error)                                          \
    {                                                                                              \
        .total_ticks = total, .self_ticks = self, .timed_calls = calls, .max_ticks = max,          \
        .callee_timed = error, .within_timed = self_error                                          \
    }

static void expect_times(const hotfn_record *r, uint32_t mode, uint32_t function,
                         const hfn_time_cell *expected)
{
    hotfn_record_timing t = HOTFN_RECORD_TIMING_INIT;

    CHECK_EQ_I64(hotfn_record_get_timing(r, function, &t), HOTFN_OK);
    if (!CHECK_EQ_U64(t.total_ns, expected->total_ticks) ||
        !CHECK_EQ_U64(t.self_ns, expected->self_ticks) ||
        !CHECK_EQ_U64(t.timed_calls, expected->timed_calls) ||
        !CHECK_EQ_U64(t.max_ns, expected->max_ticks) ||
        !CHECK_EQ_U64(t.total_error_ns, expected->callee_timed) ||
        !CHECK_EQ_U64(t.self_error_ns, expected->within_timed)) {
        printf("# function %u, mode %u\n", function, mode);
    }
}

enum { GAMMA = 4 }; /* the function of slot 2 */

/* The first function was timed in both runs, the second in one, the third in the other. */
static void times_are_combined_by_the_mode(void)
{
    static const hfn_time_cell in_first[3] = { TIMES(1000, 600, 10, 300, 30, 40),
                                               TIMES(500, 401, 5, 100, 6, 8) };
    static const hfn_time_cell in_second[3] = {
        TIMES(2000, 900, 20, 500, 40, 30), [2] = TIMES(72, 71, 7, 9, 2, 4)
    };
    static const struct {
        uint32_t mode;
        hfn_time_cell cells[3];
    } rows[] = {
        { HOTFN_MERGE_SUM,
          { TIMES(3000, 1500, 30, 500, 50, 50), TIMES(500, 401, 5, 100, 6, 8),
            TIMES(72, 71, 7, 9, 2, 4) } },
        { HOTFN_MERGE_MEAN,
          { TIMES(1500, 750, 15, 400, 25, 25), TIMES(250, 201, 3, 50, 3, 4),
            TIMES(36, 36, 4, 5, 1, 2) } },
        { HOTFN_MERGE_MIN,
          { TIMES(1000, 600, 10, 300, 30, 40), TIMES(500, 401, 5, 100, 6, 8),
            TIMES(72, 71, 7, 9, 2, 4) } },
        { HOTFN_MERGE_MAX,
          { TIMES(2000, 900, 20, 500, 40, 30), TIMES(500, 401, 5, 100, 6, 8),
            TIMES(72, 71, 7, 9, 2, 4) } },
        { HOTFN_MERGE_MEDIAN,
          { TIMES(1500, 750, 15, 400, 25, 25), TIMES(250, 201, 3, 50, 3, 4),
            TIMES(36, 36, 4, 5, 1, 2) } },
        { HOTFN_MERGE_P95,
          { TIMES(2000, 900, 20, 500, 40, 30), TIMES(500, 401, 5, 100, 6, 8),
            TIMES(72, 71, 7, 9, 2, 4) } },
        { HOTFN_MERGE_MEAN_CALLED,
          { TIMES(1500, 750, 15, 400, 25, 25), TIMES(500, 401, 5, 100, 6, 8),
            TIMES(72, 71, 7, 9, 2, 4) } },
    };

    name_files();
    write_times(first, in_first, 1);
    write_times(second, in_second, 2);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        hotfn_record_time_info info = HOTFN_RECORD_TIME_INFO_INIT;
        hotfn_record *r = merge(rows[i].mode);
        for (uint32_t f = 0; f < 3; f++) {
            expect_times(r, rows[i].mode, f < 2 ? f : GAMMA, &rows[i].cells[f]);
        }
        hotfn_record_get_time_info(r, &info);
        CHECK_EQ_U64(info.flags, HOTFN_TIMING_TIMES | HOTFN_TIMING_ERRORS);
        CHECK_EQ_U64(info.clock, HOTFN_CLOCK_MERGED);
        CHECK_EQ_U64(info.abandoned_exits, 3);
        CHECK_EQ_U64(info.clock_went_back, 6);
        CHECK_EQ_U64(info.nodes_merged, 9);
        CHECK_EQ_U64(info.sample_mean, 7);
        hotfn_record_close(r);
    }
}

/* How many calls the function's histogram holds. */
static uint64_t histogram_calls(const hotfn_record *r, uint32_t function)
{
    static uint64_t counts[HOTFN_HISTOGRAM_BUCKETS];
    uint64_t sum = 0;

    CHECK_EQ_I64(hotfn_record_get_histogram(r, function, counts), HOTFN_OK);
    for (uint32_t i = 0; i < HOTFN_HISTOGRAM_BUCKETS; i++) {
        sum += counts[i];
    }
    return sum;
}

/* A run that mapped an image with one function, f, twice: two functions, each with its calls and
 * times. */
static void write_twice(const char *path, const uint64_t calls[2], const hfn_time_cell cells[2])
{
    timed_model *model = calloc(1, sizeof *model);
    hotfn_record_module m = HOTFN_RECORD_MODULE_INIT;
    hfn_live_options o = { 0 };
    hotfn_record_function f = sample_function("f", 0x1000, HOTFN_STATE_HOOKED);
    hfn_live *live = NULL;
    uint32_t index;

    o.slot_capacity = TIMED_SLOTS;
    o.thread_capacity = 2;
    m.path = "/opt/library.so";
    m.function_count = 1;
    CHECK_EQ_I64(hfn_live_create(&live, &o, NULL, NULL), HOTFN_OK);
    for (uint32_t i = 0; i < 2; i++) {
        CHECK_EQ_I64(hfn_live_add_module(live, &m, &f, &index, NULL), HOTFN_OK);
        CHECK_EQ_U64(index, i);
        sample_count(live, 0, 70, 70, i, calls[i]);
        model->cells[0][i] = cells[i];
        model->histograms[i][timed_bucket(50)] = cells[i].timed_calls;
    }
    CHECK_EQ_I64(hfn_live_finish(live, path, HOTFN_RECORD_FINISHED, 0, NULL, NULL, NULL), HOTFN_OK);
    hfn_live_close(live);
    timed_attach(path, model, 1);
    free(model);
}

/* The times of both copies are added within a run before a mode compares runs. */
static void an_image_that_a_run_mapped_twice_becomes_one_module(void)
{
    static const hfn_time_cell in_first[2] = { { .total_ticks = 1000,
                                                 .self_ticks = 600,
                                                 .timed_calls = 10,
                                                 .max_ticks = 300,
                                                 .histogram = 1 },
                                               { .total_ticks = 500,
                                                 .self_ticks = 400,
                                                 .timed_calls = 4,
                                                 .max_ticks = 200,
                                                 .histogram = 2 } };
    static const hfn_time_cell in_second[2] = { { .timed_calls = 0 },
                                                { .total_ticks = 700,
                                                  .self_ticks = 700,
                                                  .timed_calls = 6,
                                                  .max_ticks = 400,
                                                  .histogram = 2 } };
    static const uint64_t first_calls[2] = { 10, 4 }, second_calls[2] = { 0, 6 };
    static const struct {
        uint32_t mode;
        uint64_t calls, total, self, most;
    } rows[] = { { HOTFN_MERGE_SUM, 20, 2200, 1700, 400 },
                 { HOTFN_MERGE_MEAN, 10, 1100, 850, 350 },
                 { HOTFN_MERGE_MIN, 6, 700, 700, 300 },
                 { HOTFN_MERGE_MAX, 14, 1500, 1000, 400 } };

    name_files();
    write_twice(first, first_calls, in_first);
    write_twice(second, second_calls, in_second);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        hotfn_record_timing t = HOTFN_RECORD_TIMING_INIT;
        hotfn_record *r = merge(rows[i].mode);

        CHECK_EQ_U64(info_of(r).function_count, 1);
        CHECK_EQ_U64(sample_get(r, 0).calls, rows[i].calls);
        CHECK_EQ_I64(hotfn_record_get_timing(r, 0, &t), HOTFN_OK);
        CHECK_EQ_U64(t.timed_calls, rows[i].calls);
        CHECK_EQ_U64(t.total_ns, rows[i].total);
        CHECK_EQ_U64(t.self_ns, rows[i].self);
        CHECK_EQ_U64(t.max_ns, rows[i].most);
        if (rows[i].mode == HOTFN_MERGE_SUM) {
            CHECK_EQ_U64(histogram_calls(r, 0), 20);
        }
        hotfn_record_close(r);
    }
}

static hotfn_record_time_info time_of(const hotfn_record *r)
{
    hotfn_record_time_info info = HOTFN_RECORD_TIME_INFO_INIT;

    CHECK_EQ_I64(hotfn_record_get_time_info(r, &info), HOTFN_OK);
    return info;
}

static void a_sum_of_two_equal_runs_has_twice_of_everything(void)
{
    static const uint32_t functions[] = { 0, 1, GAMMA };
    hotfn_record_time_info was, is;
    hotfn_record *one, *two;

    name_files();
    free(timed_write(first, 20, 10));
    free(timed_write(second, 20, 10));
    one = open_at(first);
    two = merge(HOTFN_MERGE_SUM);
    was = time_of(one), is = time_of(two);
    CHECK_EQ_U64(is.flags, (was.flags & ~HOTFN_TIMING_EVENTS) | HOTFN_TIMING_ERRORS);
    CHECK_EQ_U64(is.node_count, 2 * was.node_count);
    CHECK_EQ_U64(is.slow_count, 2 * was.slow_count);
    CHECK_EQ_U64(is.slow_ns, was.slow_ns);
    CHECK_EQ_U64(is.busy_ns, 2 * was.busy_ns);
    for (uint32_t i = 0; i < 3; i++) {
        hotfn_record_timing a = HOTFN_RECORD_TIMING_INIT, b = HOTFN_RECORD_TIMING_INIT;
        hotfn_record_get_timing(one, functions[i], &a);
        hotfn_record_get_timing(two, functions[i], &b);
        CHECK_EQ_U64(b.total_ns, 2 * a.total_ns);
        CHECK_EQ_U64(b.self_alloc.allocated_bytes, 2 * a.self_alloc.allocated_bytes);
        CHECK_EQ_U64(b.total_alloc.allocated_bytes, 2 * a.total_alloc.allocated_bytes);
        CHECK(a.self_alloc.allocated_bytes > 0 && b.p50_ns > 0);
        CHECK_EQ_U64(histogram_calls(two, functions[i]), 2 * histogram_calls(one, functions[i]));
    }
    hotfn_record_close(two);
    two = merge(HOTFN_MERGE_MEAN); /* what cannot be a mean is omitted */
    is = time_of(two);
    CHECK_EQ_U64(is.flags, HOTFN_TIMING_TIMES | HOTFN_TIMING_ERRORS);
    CHECK_EQ_U64(is.node_count + is.slow_count, 0);
    CHECK(is.busy_ns > 0 && is.busy_ns <= was.busy_ns);
    hotfn_record_close(two);
    hotfn_record_close(one);
}

static void a_run_that_was_not_timed_leaves_the_merge_without_times(void)
{
    static const hfn_time_cell cells[3] = { TIMES(1000, 600, 10, 300, 0, 0) };
    hotfn_record_time_info info = HOTFN_RECORD_TIME_INFO_INIT;
    hotfn_record *r;

    name_files();
    write_times(first, cells, 0);
    write_run(second, 13, 2000, 2300);
    r = merge(HOTFN_MERGE_SUM);
    hotfn_record_get_time_info(r, &info);
    CHECK_EQ_U64(info.flags, 0);
    CHECK_EQ_U64(sample_get(r, 0).calls, 10);
    CHECK_EQ_U64(sample_get(r, 1).calls, 13);
    hotfn_record_close(r);
}

static void a_merge_has_at_most_4096_records(void)
{
    static const char *paths[4097];

    name_files();
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        paths[i] = "/none";
    }
    CHECK_EQ_I64(hotfn_record_merge(paths, 4097, merged, 0, NULL, NULL), HOTFN_E_OPTION);
    CHECK_EQ_I64(hotfn_record_merge(paths, 4096, merged, 0, NULL, NULL), HOTFN_E_IO);
    CHECK_EQ_I64(hotfn_record_merge(paths, 0, merged, 0, NULL, NULL), HOTFN_E_OPTION);
}

/* The runs kept slow calls from different lengths on.  Only calls that both would have kept are in
 * the merged list, which otherwise would seem complete for both. */
static void slow_calls_are_those_that_each_run_would_keep(void)
{
    static const struct {
        uint64_t first, second;
    } rows[] = { { 60000, 90000 }, { 90000, 60000 }, { 90000, 0 }, { 0, 90000 } };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint64_t bound = rows[i].first && rows[i].second ? 90000 : 0;
        hotfn_record_time_info of[2], is;

        name_files();
        free(timed_write_slow(first, 0, 0, rows[i].first));
        free(timed_write_slow(second, 0, 0, rows[i].second));
        for (int k = 0; k < 2; k++) {
            hotfn_record *one = open_at(k ? second : first);
            of[k] = time_of(one);
            hotfn_record_close(one);
        }
        CHECK(of[0].slow_count != of[1].slow_count); /* else nothing is seen here */
        hotfn_record *both = merge(HOTFN_MERGE_SUM);
        is = time_of(both);
        CHECK_EQ_U64(is.slow_ns, bound);
        CHECK_EQ_U64(is.slow_lost, 0);
        CHECK_EQ_U64(is.slow_count, bound ? 2 * of[rows[i].first < rows[i].second].slow_count : 0);
        hotfn_record_close(both);
    }
}

static const check_test tests[] = {
    CHECK_TEST(a_sum_has_one_row_for_each_run_and_the_time_of_all),
    CHECK_TEST(a_mean_is_rounded_and_has_the_mean_time),
    CHECK_TEST(ranks_are_over_all_runs),
    CHECK_TEST(one_path_for_two_machines_is_two_modules),
    CHECK_TEST(a_function_that_one_run_refused_and_another_counted_is_counted),
    CHECK_TEST(trees_and_slow_calls_stay_with_their_run),
    CHECK_TEST(slow_calls_are_those_that_each_run_would_keep),
    CHECK_TEST(times_are_combined_by_the_mode),
    CHECK_TEST(an_image_that_a_run_mapped_twice_becomes_one_module),
    CHECK_TEST(a_sum_of_two_equal_runs_has_twice_of_everything),
    CHECK_TEST(a_run_that_was_not_timed_leaves_the_merge_without_times),
    CHECK_TEST(a_merge_has_at_most_4096_records),
    CHECK_TEST(more_reasons_than_a_record_holds_are_an_error),
};
CHECK_MAIN(tests)
