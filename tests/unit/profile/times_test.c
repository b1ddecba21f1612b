/* SPDX-License-Identifier: MIT */
/* The times of a record, compared with a model of a program whose times are known. */
#include "profile/timed.h"

static hotfn_record *open_story(timed_model **model, uint64_t inside, uint64_t outside)
{
    const char *path = sample_path("timed.hfr");
    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_record *r = NULL;

    *model = timed_write(path, inside, outside);
    if (!CHECK_EQ_I64(hotfn_record_open(&r, path, NULL, &err), HOTFN_OK)) {
        printf("# %s\n", err.text);
        exit(1);
    }
    return r;
}

static uint32_t function_index(uint32_t slot)
{
    return slot == 2 ? 4 : slot; /* sample_add_modules: gamma comes last */
}

static hotfn_record_timing timing(const hotfn_record *r, uint32_t slot)
{
    hotfn_record_timing t = HOTFN_RECORD_TIMING_INIT;

    CHECK_EQ_I64(hotfn_record_get_timing(r, function_index(slot), &t), HOTFN_OK);
    return t;
}

static void totals_are_those_of_the_program(void)
{
    static const uint64_t costs[][2] = { { 0, 0 }, { 20, 10 }, { 7, 100 } };

    for (size_t k = 0; k < 3; k++) {
        timed_model *m;
        hotfn_record *r = open_story(&m, costs[k][0], costs[k][1]);
        hotfn_record_thread t = HOTFN_RECORD_THREAD_INIT;
        uint64_t self = 0;

        for (uint32_t s = 0; s < 3; s++) {
            hotfn_record_timing found = timing(r, s);

            CHECK_EQ_U64(found.total_ns, m->true_total[s]);
            CHECK_EQ_U64(found.self_ns, m->true_self[s]);
            CHECK_EQ_U64(found.timing, HOTFN_TIMING_FULL);
            self += found.self_ns;
        }
        hotfn_record_get_thread(r, 0, &t);
        CHECK_EQ_U64(t.busy_ns, m->true_total[0]);
        self -= t.busy_ns;
        hotfn_record_get_thread(r, 1, &t);
        CHECK_EQ_U64(t.busy_ns, self); /* self times sum up to the threads' busy times */
        hotfn_record_close(r);
        free(m);
    }
}

static void the_error_by_the_counter_is_what_was_subtracted(void)
{
    timed_model *m;
    hotfn_record *r = open_story(&m, 20, 10);
    const hfn_time_cell *alpha = &m->cells[0][0];
    hotfn_record_timing t = timing(r, 0);

    CHECK_EQ_U64(t.total_error_ns, alpha->within_timed * 20 + (alpha->within_timed - 1) * 10);
    CHECK_EQ_U64(t.self_error_ns, 20 + alpha->callee_timed * 10);
    hotfn_record_close(r);
    free(m);
}

static void percentiles_are_within_three_percent(void)
{
    timed_model *m;
    hotfn_record *r = open_story(&m, 0, 0);
    hotfn_record_timing t;
    uint64_t sum = 0, *counts = calloc(HOTFN_HISTOGRAM_BUCKETS, sizeof *counts);

    hotfn_record_choose_process(r, 0);
    t = timing(r, 2); /* 25 of 100 ns, 100 200 ... 1000, and 1000 2000 ... 100000 */
    CHECK_EQ_U64(t.max_ns, 100000);
    CHECK(t.p50_ns >= 31 * 970 && t.p50_ns <= 34 * 1030);
    CHECK(t.p90_ns >= 86 * 970 && t.p90_ns <= 88 * 1030);
    CHECK(t.p99_ns >= 98 * 970 && t.p99_ns <= 100000);
    CHECK_EQ_I64(hotfn_record_get_histogram(r, function_index(2), counts), HOTFN_OK);
    for (uint32_t i = 0; i < HOTFN_HISTOGRAM_BUCKETS; i++) {
        sum += counts[i];
    }
    CHECK_EQ_U64(sum, t.timed_calls);
    for (uint32_t i = 0; i < HOTFN_HISTOGRAM_BUCKETS; i++) {
        CHECK(hotfn_record_get_bucket_ns(r, i) < hotfn_record_get_bucket_ns(r, i + 1));
    }
    free(counts);
    hotfn_record_close(r);
    free(m);
}

static void percentiles_of_merged_runs_are_in_nanoseconds(void)
{
    char runs[2][128];
    const char *const paths[] = { runs[0], runs[0] };
    hotfn_record *merged = NULL;
    hotfn_record_timing t;
    timed_model *m;

    hotfn_record_close(open_story(&m, 0, 0));
    snprintf(runs[0], sizeof runs[0], "%s", sample_path("timed.hfr"));
    snprintf(runs[1], sizeof runs[1], "%s", sample_path("merged.hfr"));
    CHECK_EQ_I64(hotfn_record_merge(paths, 2, runs[1], HOTFN_MERGE_SUM, NULL, NULL), HOTFN_OK);
    CHECK_EQ_I64(hotfn_record_open(&merged, runs[1], NULL, NULL), HOTFN_OK);
    t = timing(merged, 2); /* its buckets are as wide as 50000 ns ask for */
    CHECK(t.p50_ns >= 31 * 970 - 1000 && t.p50_ns <= 34 * 1030 + 1000);
    CHECK(t.p90_ns >= 86 * 970 - 2000 && t.p90_ns <= 88 * 1030 + 2000);
    hotfn_record_close(merged);
    free(m);
}

static void edges_count_recursion_once(void)
{
    timed_model *m;
    hotfn_record *r = open_story(&m, 20, 10);
    hotfn_record_time_info info = HOTFN_RECORD_TIME_INFO_INIT;
    uint64_t into[5] = { 0 }, total_into_beta = 0, last = 0;

    hotfn_record_get_time_info(r, &info);
    CHECK_EQ_U64(info.edge_count, 6); /* 0-1 0-2 1-1 1-2, and outside to 0 and to 2 */
    for (uint32_t i = 0; i < info.edge_count; i++) {
        hotfn_record_edge e = HOTFN_RECORD_EDGE_INIT;

        CHECK_EQ_I64(hotfn_record_get_edge(r, i, &e), HOTFN_OK);
        CHECK(i == 0 || ((uint64_t)e.caller << 32 | e.callee) > last); /* as timing.h says */
        last = (uint64_t)e.caller << 32 | e.callee;
        into[e.callee] += e.calls;
        if (e.callee == 1 && e.caller == 0) {
            total_into_beta = e.total_ns;
        }
    }
    CHECK_EQ_U64(into[0], 1);
    CHECK_EQ_U64(into[1], m->calls[0][1]);
    CHECK_EQ_U64(into[4], m->calls[0][2] + m->calls[1][2]);
    CHECK_EQ_U64(total_into_beta, m->true_total[1]);
    hotfn_record_close(r);
    free(m);
}

static void nodes_precede_their_callees(void)
{
    timed_model *m;
    hotfn_record *r = open_story(&m, 20, 10);
    hotfn_record_time_info info = HOTFN_RECORD_TIME_INFO_INIT;
    uint64_t self[5] = { 0 };

    hotfn_record_get_time_info(r, &info);
    CHECK_EQ_U64(info.node_count, m->node_count - 2); /* roots are not listed */
    for (uint32_t i = 0; i < info.node_count; i++) {
        hotfn_record_node n = HOTFN_RECORD_NODE_INIT;

        CHECK_EQ_I64(hotfn_record_get_node(r, i, &n), HOTFN_OK);
        CHECK(n.parent == HOTFN_NO_NODE || n.parent < i);
        CHECK(n.function < 5);
        self[n.function] += n.self_ns;
    }
    for (uint32_t s = 0; s < 3; s++) {
        CHECK_EQ_U64(self[function_index(s)], m->true_self[s]);
    }
    hotfn_record_close(r);
    free(m);
}

static void slow_calls_and_events_are_listed(void)
{
    timed_model *m;
    hotfn_record *r = open_story(&m, 0, 0);
    hotfn_record_time_info info = HOTFN_RECORD_TIME_INFO_INIT;
    hotfn_record_slow_call s = HOTFN_RECORD_SLOW_CALL_INIT;
    hotfn_record_event e = HOTFN_RECORD_EVENT_INIT;
    hotfn_record_node n = HOTFN_RECORD_NODE_INIT;

    hotfn_record_get_time_info(r, &info);
    CHECK_EQ_U64(info.slow_count, m->slow_count);
    CHECK_EQ_U64(info.slow_ns, 90000);
    CHECK_EQ_I64(hotfn_record_get_slow_call(r, 0, &s), HOTFN_OK);
    CHECK(s.duration_ns >= 90000);
    CHECK_EQ_I64(hotfn_record_get_node(r, s.node, &n), HOTFN_OK);
    CHECK_EQ_U64(n.function, s.function);
    CHECK_EQ_U64(info.event_count, m->event_count[0] + m->event_count[1]);
    CHECK_EQ_I64(hotfn_record_get_event(r, 0, &e), HOTFN_OK);
    CHECK(e.thread == 0 && e.function == 0 && e.kind == 1);
    CHECK_EQ_I64(hotfn_record_get_event(r, info.event_count - 1, &e), HOTFN_OK);
    CHECK(e.thread == 1 && e.function == 4 && e.kind == 2);
    CHECK_EQ_I64(hotfn_record_get_event(r, info.event_count, &e), HOTFN_E_NOT_FOUND);
    hotfn_record_close(r);
    free(m);
}

static void memory_of_a_function_is_its_nodes(void)
{
    timed_model *m;
    hotfn_record *r = open_story(&m, 0, 0);
    hotfn_record_timing alpha, beta;

    alpha = timing(r, 0);
    beta = timing(r, 1);
    CHECK_EQ_U64(alpha.self_alloc.allocated_blocks, 10);
    CHECK_EQ_U64(alpha.total_alloc.allocated_blocks, 10 * (m->node_count - 3)); /* thread 0's */
    CHECK(beta.total_alloc.allocated_bytes > beta.self_alloc.allocated_bytes);
    hotfn_record_close(r);
    free(m);
}

static void counting_records_say_that_they_were_not_timed(void)
{
    hfn_live *live = sample_live(NULL);
    const char *path = sample_path("counted.hfr");
    hotfn_record_time_info info = HOTFN_RECORD_TIME_INFO_INIT;
    hotfn_record_timing t;
    hotfn_record *r = NULL;

    sample_count(live, 0, 70, 70, 0, 5);
    hfn_live_finish(live, path, HOTFN_RECORD_FINISHED, 0, NULL, NULL, NULL);
    hfn_live_close(live);
    CHECK_EQ_I64(hotfn_record_open(&r, path, NULL, NULL), HOTFN_OK);
    CHECK_EQ_I64(hotfn_record_get_time_info(r, &info), HOTFN_OK);
    CHECK_EQ_U64(info.flags, 0);
    t = timing(r, 0);
    CHECK_EQ_U64(t.timing, HOTFN_TIMING_COUNT_ONLY);
    CHECK_STR(t.reason, "not-timed");
    hotfn_record_close(r);
}

static void repair_keeps_the_times(void)
{
    timed_model *m;
    hotfn_record *r = open_story(&m, 20, 10);
    const char *path = sample_path("timed.hfr");
    char again[256], lost[64];

    hotfn_record_close(r);
    snprintf(again, sizeof again, "%s.again", path);
    CHECK_EQ_I64(hotfn_record_repair(path, again, lost, sizeof lost, NULL, NULL), HOTFN_OK);
    CHECK_STR(lost, "");
    CHECK_EQ_I64(hotfn_record_open(&r, again, NULL, NULL), HOTFN_OK);
    for (uint32_t s = 0; s < 3; s++) {
        CHECK_EQ_U64(timing(r, s).total_ns, m->true_total[s]);
    }
    hotfn_record_close(r);
    free(m);
}

/* Of 40 calls of 1000 ticks, 10 were timed in blocks of four. */
static void sampled_totals_are_fitted_and_have_an_error(void)
{
    enum { TIMED = 10, INTERVAL = 4, LENGTH = 1024, CALLS = 41 };
    timed_model *m;
    hotfn_record *r = open_story(&m, 20, 10);
    hfn_part *states = &r->parts[HFN_SECTION_TIMING_STATES];
    hotfn_record_timing t;
    double scale = (double)CALLS / (TIMED * INTERVAL), error;

    states->byte_count = (uint64_t)r->function_count * sizeof(uint32_t);
    states->bytes = hfn_allocate_zeroed(&r->env, states->byte_count + 2);
    for (uint32_t i = 0; i < r->function_count; i++) {
        hfn_write_le32(states->bytes + 4 * i, HOTFN_TIMING_SAMPLE);
    }
    r->times.header.flags = HOTFN_TIMING_TIMES | HOTFN_TIMING_SAMPLED;
    r->times.node_count = 0;
    for (size_t i = 0; i < r->times.entry_count; i++) {
        hfn_time_cell *c = &r->times.entries[i].cell;
        bool is_first = r->times.entries[i].slot == 2 && r->times.entries[i].thread == 0;

        memset(c, 0, sizeof *c);
        if (is_first) {
            c->timed_calls = TIMED;
            c->total_ticks = TIMED * INTERVAL * LENGTH;
            c->max_ticks = LENGTH;
            c->sampled.weight = TIMED * INTERVAL;
            c->sampled.squares = UINT64_C(1) * TIMED * INTERVAL * (INTERVAL - 1) *
                                 (LENGTH >> HFN_SAMPLE_SHIFT) * (LENGTH >> HFN_SAMPLE_SHIFT);
        }
    }
    r->totals[2] = CALLS;
    CHECK_EQ_I64(hfn_profile_sum_times(r), HOTFN_OK);
    t = timing(r, 2);
    CHECK_EQ_U64(t.timing, HOTFN_TIMING_SAMPLE);
    CHECK_EQ_U64(t.timed_calls, TIMED);
    CHECK_EQ_U64(t.total_ns, CALLS * LENGTH);
    error = scale * LENGTH * hfn_times_root(TIMED * INTERVAL * (INTERVAL - 1));
    CHECK((double)t.total_error_ns > error - 2 && (double)t.total_error_ns < error + 2);
    CHECK_EQ_U64(t.self_ns, 0);
    CHECK(t.self_error_ns == HOTFN_ERROR_UNKNOWN);
    t = timing(r, 1); /* none of its calls was chosen */
    CHECK(t.total_ns == 0 && t.total_error_ns == HOTFN_ERROR_UNKNOWN);
    hotfn_record_close(r);
    free(m);
}

/* The story, as another version's engine would have written it. */
static void write_version(const char *to, uint32_t version, uint32_t more_flags, uint32_t clock)
{
    timed_model *m;
    hotfn_record *r = open_story(&m, 20, 10);

    r->times.header.version = version;
    r->times.header.flags |= more_flags;
    r->times.header.clock = clock;
    CHECK_EQ_I64(hfn_record_write(r, to, NULL), HOTFN_OK);
    hotfn_record_close(r);
    free(m);
}

typedef struct version_case {
    uint32_t version, more_flags, clock;
    const char *note; /* a part of the note; NULL: the times are read */
} version_case;

static void check_version_case(const version_case *c)
{
    const char *path = sample_path("version.hfr");
    hotfn_record_time_info info = HOTFN_RECORD_TIME_INFO_INIT;
    hotfn_record_function f = HOTFN_RECORD_FUNCTION_INIT;
    hotfn_record *r = NULL;

    write_version(path, c->version, c->more_flags, c->clock);
    CHECK_EQ_I64(hotfn_record_open(&r, path, NULL, NULL), HOTFN_OK);
    hotfn_record_get_time_info(r, &info);
    hotfn_record_get_function(r, function_index(2), &f);
    CHECK(f.calls > 100);
    CHECK_EQ_I64(info.flags != 0, c->note == NULL);
    CHECK_EQ_I64(timing(r, 2).total_ns != 0, c->note == NULL);
    if (c->note) {
        CHECK(strstr(info.note, c->note) != NULL);
        CHECK_EQ_U64(info.note_offset, r->layout.sections[HFN_SECTION_TIME_HEADER].offset);
        CHECK_STR(timing(r, 2).reason, "not-read");
        CHECK_STR(timing(r, 2).reason_text, info.note);
    } else {
        CHECK_STR(info.note, "");
    }
    hotfn_record_close(r);
}

static void times_that_mean_something_else_are_not_read(void)
{
    static const version_case cases[] = {
        { 1, 0, HOTFN_CLOCK_TSC, "version 1" },
        { 1, 0, HOTFN_CLOCK_MERGED, "version 1" },
        { HFN_TIMES_VERSION, 0, HOTFN_CLOCK_TSC, NULL },
        { HFN_TIMES_VERSION + 1, 0, HOTFN_CLOCK_TSC, "reads version 4" },
    };

    for (size_t i = 0; i < HFN_COUNT_OF(cases); i++) {
        check_version_case(&cases[i]);
    }
}

static void repair_and_merge_omit_times_that_are_not_read(void)
{
    const char *old = sample_path("version.hfr"), *to = sample_path("without.hfr");
    const char *const both[] = { old, sample_path("timed.hfr") };
    hotfn_record_time_info info = HOTFN_RECORD_TIME_INFO_INIT;
    hotfn_record *r = NULL;
    char lost[200] = "";

    write_version(old, 0, HOTFN_TIMING_SAMPLED, HOTFN_CLOCK_TSC);
    CHECK_EQ_I64(hotfn_record_repair(old, to, lost, sizeof lost, NULL, NULL), HOTFN_OK);
    CHECK(strstr(lost, "version 0") != NULL);
    CHECK_EQ_I64(hotfn_record_open(&r, to, NULL, NULL), HOTFN_OK);
    hotfn_record_get_time_info(r, &info);
    CHECK_EQ_U64(info.flags, 0);
    CHECK_STR(info.note, "");
    hotfn_record_close(r);
    CHECK_EQ_I64(hotfn_record_merge(both, 2, to, HOTFN_MERGE_SUM, NULL, NULL), HOTFN_OK);
    CHECK_EQ_I64(hotfn_record_open(&r, to, NULL, NULL), HOTFN_OK);
    hotfn_record_get_time_info(r, &info);
    CHECK_EQ_U64(info.flags, 0);
    hotfn_record_close(r);
}

static void windows_hold_what_was_added_since(void)
{
    hotfn_env env = hfn_env_fill(NULL);
    timed_model *m = calloc(1, sizeof *m), *early = calloc(1, sizeof *early);
    hfn_times from, now;

    early->slow = m->slow = 90000;
    timed_story(early);
    timed_story(m);
    timed_story(m); /* the same once more: the difference is one story */
    hfn_times_init(&from, &env);
    hfn_times_init(&now, &env);
    timed_fill(&from, early, 2);
    timed_fill(&now, m, 2);
    from.threads[0].last_tick = 500;
    CHECK(hfn_times_subtract(&now, &from));
    for (size_t i = 0; i < now.entry_count; i++) {
        const hfn_time_entry *e = &now.entries[i];

        CHECK_EQ_U64(e->cell.total_ticks, early->cells[e->thread][e->slot].total_ticks);
        CHECK_EQ_U64(e->cell.self_ticks, early->cells[e->thread][e->slot].self_ticks);
    }
    for (uint32_t i = 0; i < now.node_count; i++) {
        CHECK_EQ_U64(now.nodes[i].calls, early->nodes[i].calls);
    }
    CHECK_EQ_U64(now.threads[0].busy_ticks, early->threads[0].busy);
    CHECK_EQ_U64(now.threads[0].first_tick, 500);
    CHECK_EQ_U64(now.event_count, early->event_count[0] + early->event_count[1]);
    CHECK_EQ_U64(now.events[0].kind, 1);
    CHECK_EQ_U64(now.slow_count, early->slow_count);
    CHECK_EQ_U64(now.header.slow_used, early->slow_count);
    hfn_times_finish(&from);
    hfn_times_finish(&now);
    free(early);
    free(m);
}

/* A tree as a torn or hostile record may hold it. */
static void damaged_trees_are_reduced(void)
{
    static const hfn_time_node nodes[] = {
        { .parent = 0 },            /* a root */
        { .parent = 2, .slot = 1 }, /* parents after their children are fine */
        { .parent = 0, .slot = 0, .calls = 7 },
        { .parent = 4, .slot = 1 }, /* a cycle */
        { .parent = 3, .slot = 1 },
        { .parent = 99, .slot = 1 },
        { .parent = 0, .slot = 77 },
        { .parent = 6, .slot = 1 },
        { .parent = 0, .slot = 1, .thread = 9 },
    };
    hotfn_env env = hfn_env_fill(NULL);
    hfn_times t;

    hfn_times_init(&t, &env);
    t.present = true;
    CHECK(hfn_times_make_threads(&t, 1) && hfn_times_make_nodes(&t, 9, false));
    memcpy(t.nodes, nodes, sizeof nodes);
    CHECK(hfn_times_validate(&t, 3, 1));
    CHECK_EQ_U64(t.node_count, 2);
    CHECK_EQ_U64(t.nodes[0].calls, 7);
    CHECK_EQ_U64(t.nodes[1].parent, 0);
    CHECK_EQ_U64(t.nodes_dropped, 6);
    hfn_times_finish(&t);
}

/* Thread 1 of the story: 100 calls of gamma, from outside; it is the first one then, and the only
 * one. */
static void a_chosen_threads_events_and_nodes_are_its_own(void)
{
    timed_model *m;
    hotfn_record *r = open_story(&m, 20, 10);
    hotfn_record_event e = HOTFN_RECORD_EVENT_INIT;
    hotfn_record_node n = HOTFN_RECORD_NODE_INIT;
    uint64_t calls = 0;

    CHECK_EQ_I64(hotfn_record_choose_thread(r, 71), HOTFN_OK);
    CHECK_EQ_U64(m->event_count[1], 200);
    for (uint64_t i = 0; i < 200; i++) {
        CHECK_EQ_I64(hotfn_record_get_event(r, i, &e), HOTFN_OK);
        CHECK_EQ_U64(e.thread, 0);
        CHECK_EQ_U64(e.function, function_index(2));
        CHECK_EQ_U64(e.kind, 1 + i % 2);
    }
    CHECK_EQ_I64(hotfn_record_get_event(r, 200, &e), HOTFN_E_NOT_FOUND);
    for (uint32_t i = 0; hotfn_record_get_node(r, i, &n) == HOTFN_OK; i++) {
        CHECK_EQ_U64(n.calls > 0 ? n.thread : 0, 0);
        calls += n.calls;
    }
    CHECK_EQ_U64(calls, 100);
    CHECK_EQ_I64(hotfn_record_choose_thread(r, 70), HOTFN_OK);
    CHECK_EQ_I64(hotfn_record_get_event(r, m->event_count[0] - 1, &e), HOTFN_OK);
    CHECK_EQ_U64(e.function, function_index(0));
    CHECK_EQ_I64(hotfn_record_get_event(r, m->event_count[0], &e), HOTFN_E_NOT_FOUND);
    hotfn_record_close(r);
    free(m);
}

static void a_root_is_as_precise_as_a_double(void)
{
    CHECK(hfn_times_root(0) == 0 && hfn_times_root(-1) == 0);
    for (double x = 1e-300; x < 1e300; x *= 7.3) {
        double root = hfn_times_root(x);
        CHECK(root * root > x * (1 - 1e-15) && root * root < x * (1 + 1e-15));
    }
    for (double whole = 1; whole < 3e9; whole = whole * 3 + 1) {
        CHECK(hfn_times_root(whole * whole) == whole);
    }
}

static const check_test tests[] = {
    CHECK_TEST(a_chosen_threads_events_and_nodes_are_its_own),
    CHECK_TEST(totals_are_those_of_the_program),
    CHECK_TEST(the_error_by_the_counter_is_what_was_subtracted),
    CHECK_TEST(percentiles_are_within_three_percent),
    CHECK_TEST(percentiles_of_merged_runs_are_in_nanoseconds),
    CHECK_TEST(edges_count_recursion_once),
    CHECK_TEST(nodes_precede_their_callees),
    CHECK_TEST(slow_calls_and_events_are_listed),
    CHECK_TEST(memory_of_a_function_is_its_nodes),
    CHECK_TEST(counting_records_say_that_they_were_not_timed),
    CHECK_TEST(repair_keeps_the_times),
    CHECK_TEST(sampled_totals_are_fitted_and_have_an_error),
    CHECK_TEST(times_that_mean_something_else_are_not_read),
    CHECK_TEST(repair_and_merge_omit_times_that_are_not_read),
    CHECK_TEST(windows_hold_what_was_added_since),
    CHECK_TEST(damaged_trees_are_reduced),
    CHECK_TEST(a_root_is_as_precise_as_a_double),
};
CHECK_MAIN(tests)
