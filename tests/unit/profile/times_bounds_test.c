/* SPDX-License-Identifier: MIT */
/* One call that was interrupted stands for 32: the estimates are cut down to what is possible, and no others. */
#include "profile/timed.h"

enum { ALPHA = 0, GAMMA = 2, CALLS = 100, STANDS_FOR = 32, LIFE = 5000000 };

/* alpha, which is timed in full, calls gamma; the same from outside in thread 1. */
static hotfn_record *open_sample(uint64_t longest)
{
    const char *path = sample_path("bounds.hfr");
    timed_model *m = calloc(1, sizeof *m);
    hotfn_record *r = NULL;
    hfn_part *states;

    timed_enter(m, 0, ALPHA);
    timed_work(m, 0, 3000000);
    for (uint32_t i = 0; i < CALLS; i++) {
        timed_call(m, 0, GAMMA, i == 7 ? longest : 1000);
    }
    timed_exit(m, 0);
    for (uint32_t i = 0; i < CALLS; i++) {
        timed_call(m, 1, GAMMA, i == 7 ? longest : 1000);
    }
    for (uint32_t i = 0; i < 2; i++) {
        m->calls[i][GAMMA] *= STANDS_FOR;
    }
    for (uint32_t i = 0; i < HOTFN_HISTOGRAM_BUCKETS; i++) {
        m->histograms[GAMMA][i] *= STANDS_FOR;
    }
    timed_write_counts(path, m, 2);
    timed_attach(path, m, 2);
    free(m);
    CHECK_EQ_I64(hotfn_record_open(&r, path, NULL, NULL), HOTFN_OK);
    states = &r->parts[HFN_SECTION_TIMING_STATES];
    states->byte_count = (uint64_t)r->function_count * sizeof(uint32_t);
    states->bytes = hfn_allocate_zeroed(&r->env, states->byte_count + 2);
    for (uint32_t i = 0; i < r->function_count; i++) {
        hfn_write_le32(states->bytes + 4 * i, HOTFN_TIMING_SAMPLE);
    }
    r->times.header.flags = HOTFN_TIMING_TIMES | HOTFN_TIMING_HISTOGRAMS | HOTFN_TIMING_SAMPLED;
    for (uint32_t i = 0; i < r->times.node_count; i++) {
        hfn_time_node *n = &r->times.nodes[i];
        uint64_t stands_for = n->slot == GAMMA ? STANDS_FOR : 1;

        n->calls *= stands_for;
        n->total_ticks *= stands_for;
        n->within_timed = 0;
        n->spread = n->timed_calls * stands_for * (stands_for - 1);
    }
    return r;
}

static hotfn_record_timing told(const hotfn_record *r, uint32_t function)
{
    hotfn_record_timing t = HOTFN_RECORD_TIMING_INIT;

    CHECK_EQ_I64(hotfn_record_get_timing(r, function, &t), HOTFN_OK);
    return t;
}

static hotfn_record_timing gamma_told(hotfn_record *r, uint64_t life)
{
    for (uint32_t i = 0; i < 2; i++) {
        r->times.threads[i].first_tick = life ? 1000 : 0;
        r->times.threads[i].last_tick = life ? 1000 + life : 0;
    }
    CHECK_EQ_I64(hfn_profile_sum_times(r), HOTFN_OK);
    return told(r, 4); /* sample_add_modules: gamma comes last */
}

static bool is_near(double got, double wanted)
{
    return CHECK(got > wanted * 0.999 && got < wanted * 1.001);
}

static uint64_t edge_from(const hotfn_record *r, uint32_t caller)
{
    hotfn_record_edge e = HOTFN_RECORD_EDGE_INIT;

    for (uint32_t i = 0; hotfn_record_get_edge(r, i, &e) == HOTFN_OK; i++) {
        if (e.caller == caller && e.callee == 4) {
            return e.total_ns;
        }
    }
    return 0;
}

static void no_estimate_is_longer_than_what_is_known(void)
{
    hotfn_record *r = open_sample(300000);
    hotfn_record_timing alpha, free_gamma = gamma_told(r, 0), gamma = gamma_told(r, LIFE);
    hotfn_record_node n = HOTFN_RECORD_NODE_INIT;
    uint64_t nodes = 0;

    alpha = told(r, ALPHA);
    CHECK_EQ_U64(alpha.total_ns, 3000000 + 99 * 1000 + 300000);
    /* what is known without a life is alpha's time alone */
    is_near((double)free_gamma.total_ns, (double)alpha.total_ns + 32.0 * 399000);
    is_near((double)gamma.total_ns, (double)alpha.total_ns + LIFE);
    is_near((double)edge_from(r, ALPHA), (double)alpha.total_ns);
    is_near((double)edge_from(r, HOTFN_NO_FUNCTION), LIFE);
    for (uint32_t i = 0; hotfn_record_get_node(r, i, &n) == HOTFN_OK; i++) {
        nodes += n.function == 4 ? n.total_ns : 0;
    }
    is_near((double)nodes, (double)gamma.total_ns);
    CHECK(gamma.total_error_ns < free_gamma.total_error_ns);
    CHECK(gamma.total_error_ns > gamma.total_ns / 3); /* and it says so */
    hotfn_record_close(r);
}

static void what_is_above_by_more_than_chance_stays(void)
{
    hotfn_record *r = open_sample(1000);

    is_near((double)gamma_told(r, 1000000).total_ns, 2.0 * STANDS_FOR * CALLS * 1000);
    hotfn_record_close(r);
}

static void a_caller_with_calls_that_went_by_bounds_nothing(void)
{
    hotfn_record *r = open_sample(300000);

    r->totals[ALPHA] = 2;
    gamma_told(r, LIFE);
    is_near((double)edge_from(r, ALPHA), LIFE);
    hotfn_record_close(r);
}

static void one_process_has_its_own_life(void)
{
    hotfn_record *r = open_sample(300000);

    gamma_told(r, LIFE);
    r->times.threads[1].first_tick = 0; /* of another process, of which nothing is known */
    ((hfn_thread_cell *)(void *)(r->parts[HFN_SECTION_CELLS].bytes + sizeof(hfn_cell_header)))[1]
        .pid = 99;
    CHECK_EQ_I64(hotfn_record_choose_process(r, 70), HOTFN_OK);
    is_near((double)told(r, 4).total_ns, (double)told(r, ALPHA).total_ns);
    hotfn_record_close(r);
}

static void merged_runs_keep_what_was_cut(void)
{
    const char *path = sample_path("bounds.hfr"), *to = sample_path("bounds_sum.hfr");
    const char *const paths[] = { path, path };
    hotfn_record *r = open_sample(300000);
    hotfn_record_timing gamma = gamma_told(r, LIFE);

    CHECK_EQ_I64(hfn_record_write(r, path, NULL), HOTFN_OK);
    hotfn_record_close(r);
    CHECK_EQ_I64(hotfn_record_merge(paths, 2, to, HOTFN_MERGE_SUM, NULL, NULL), HOTFN_OK);
    CHECK_EQ_I64(hotfn_record_open(&r, to, NULL, NULL), HOTFN_OK);
    is_near((double)told(r, 4).total_ns, 2.0 * (double)gamma.total_ns);
    hotfn_record_close(r);
}

static const check_test tests[] = {
    CHECK_TEST(no_estimate_is_longer_than_what_is_known),
    CHECK_TEST(what_is_above_by_more_than_chance_stays),
    CHECK_TEST(a_caller_with_calls_that_went_by_bounds_nothing),
    CHECK_TEST(one_process_has_its_own_life),
    CHECK_TEST(merged_runs_keep_what_was_cut),
};
CHECK_MAIN(tests)
