/* SPDX-License-Identifier: MIT */
/* A function that is called often and is long only where it calls one that is always timed, as an insertion into a table
 * that must grow: what a record tells of it and of its caller, against streams whose times are known. */
#include "profile/sampled.h"

enum { OFTEN, CALLER, RARE };
enum { STREAMS = 100, CALLS = 60000, LEAST_OFTEN = 1000 };

typedef enum stream_kind {
    STREAM_GROWS,    /* now and then it calls the rare one                                  */
    STREAM_ITS_OWN,  /* it has as many long calls of its own, which nobody else knows of    */
    STREAM_IN_TURN,  /* the rare one calls it in turn, often, as a table that grows does    */
    STREAM_TOGETHER, /* the rare one is called many times in one call                       */
    STREAM_KINDS
} stream_kind;

static uint64_t long_ticks(sampled_stream *s)
{
    uint64_t ticks = 2000;

    while (random_below(&s->random, 3) && ticks < 100000) {
        ticks *= 2;
    }
    return ticks + random_below(&s->random, (uint32_t)ticks);
}

static void call_rare(sampled_stream *s, stream_kind kind)
{
    sampled_enter(s, RARE);
    s->clock += long_ticks(s);
    for (uint32_t i = kind == STREAM_IN_TURN ? 100 : 0; i > 0; i--) {
        sampled_call(s, OFTEN, 20 + random_below(&s->random, 10));
    }
    sampled_exit(s);
}

static void call_often(sampled_stream *s, stream_kind kind)
{
    uint32_t times = kind == STREAM_TOGETHER ? 10 : 1;

    sampled_enter(s, OFTEN);
    s->clock += 20 + random_below(&s->random, 10);
    if (random_below(&s->random, LEAST_OFTEN * times) == 0) {
        while (times-- > 0) {
            call_rare(s, kind);
        }
    }
    if (kind == STREAM_ITS_OWN && random_below(&s->random, LEAST_OFTEN) == 0) {
        s->clock += long_ticks(s);
    }
    sampled_exit(s);
}

static void run(sampled_stream *s, stream_kind kind, uint32_t number)
{
    memset(s, 0, sizeof *s);
    s->clock = 1000;
    s->random = random_seed(number + 1);
    s->drawn = number;
    for (uint32_t i = 0; i < CALLS; i++) {
        sampled_enter(s, CALLER);
        s->clock += 10 + random_below(&s->random, 10);
        call_often(s, kind);
        sampled_exit(s);
    }
}

enum { OFTEN_TOTAL, OFTEN_SELF, CALLER_TOTAL, RARE_TOTAL, FIGURES };

static void try_streams(hotfn_record *r, stream_kind kind, sampled_verdict v[FIGURES])
{
    sampled_stream *s = malloc(sizeof *s);

    memset(v, 0, FIGURES * sizeof *v);
    for (uint32_t number = 0; number < STREAMS; number++) {
        hotfn_record_timing often, caller, rare;

        run(s, kind, number);
        sampled_put(r, s);
        often = sampled_told(r, OFTEN);
        caller = sampled_told(r, CALLER);
        rare = sampled_told(r, RARE);
        CHECK(rare.timed_calls == s->functions[RARE].calls);
        sampled_judge(&v[OFTEN_TOTAL], often.total_ns, often.total_error_ns,
                      s->functions[OFTEN].truth);
        sampled_judge(&v[OFTEN_SELF], often.self_ns, often.self_error_ns,
                      s->functions[OFTEN].all_truth - s->functions[RARE].all_truth);
        sampled_judge(&v[CALLER_TOTAL], caller.total_ns, caller.total_error_ns,
                      s->functions[CALLER].truth);
        sampled_judge(&v[RARE_TOTAL], rare.total_ns, rare.total_error_ns, s->functions[RARE].truth);
    }
    free(s);
}

static void check_figures(const char *kind, const sampled_verdict v[FIGURES])
{
    static const char *const figures[] = { "often's total", "often's self", "caller's total" };
    char what[80];

    for (uint32_t i = 0; i < RARE_TOTAL; i++) {
        double most =
            v[i].error * 1.5; /* a long call too many stays: a little too much in the mean */
        bool right = CHECK(v[i].bias > -most && v[i].bias < most) &
                     CHECK(v[i].within_two >= STREAMS * 91 / 100) &
                     CHECK(v[i].off < 0.15 * STREAMS) & CHECK_EQ_U64(v[i].unknown, 0);

        snprintf(what, sizeof what, "%s, %s", kind, figures[i]);
        if (!right) {
            sampled_print(what, &v[i]);
        }
    }
    CHECK(v[RARE_TOTAL].off == 0 && v[RARE_TOTAL].error == 0);
}

static hotfn_record *open_kind(stream_kind kind)
{
    static const char *const once[] = { "10", "02", NULL }, *const in_turn[] = { "10", "02", "20",
                                                                                 NULL };

    return sampled_open(sample_path("exact.hfr"), kind == STREAM_IN_TURN ? in_turn : once);
}

static void rare_long_calls_of_others_are_known(void)
{
    static const char *const kinds[] = { "grows", "its own", "in turn", "together" };

    for (stream_kind kind = 0; kind < STREAM_KINDS; kind++) {
        hotfn_record *r = open_kind(kind);
        sampled_verdict v[FIGURES];

        if (kind != STREAM_ITS_OWN) {
            try_streams(r, kind, v);
            check_figures(kinds[kind], v);
        }
        hotfn_record_close(r);
    }
}

/* Those that are its own and went by untimed are seen by nobody; what others took is still the least of it. */
static void no_total_is_less_than_what_is_known_of_its_callees(void)
{
    hotfn_record *r = open_kind(STREAM_ITS_OWN);
    sampled_stream *s = malloc(sizeof *s);
    sampled_verdict v = { 0 };

    for (uint32_t number = 0; number < STREAMS; number++) {
        hotfn_record_timing often;
        uint64_t known, edges = 0;
        hotfn_record_edge e = HOTFN_RECORD_EDGE_INIT;

        run(s, STREAM_ITS_OWN, number);
        sampled_put(r, s);
        known = s->functions[RARE].truth;
        often = sampled_told(r, OFTEN);
        CHECK(often.total_ns >= known && sampled_told(r, CALLER).total_ns >= known);
        sampled_judge(&v, often.total_ns, often.total_error_ns, s->functions[OFTEN].truth);
        for (uint32_t i = 0; hotfn_record_get_edge(r, i, &e) == HOTFN_OK; i++) {
            edges += e.callee == 0 ? e.total_ns : 0;
        }
        CHECK(edges + 2 > often.total_ns && edges < often.total_ns + 2);
    }
    if (!CHECK(v.bias > -0.2 * STREAMS && v.bias < 0.2 * STREAMS) ||
        !CHECK(v.off < 0.7 * STREAMS)) {
        sampled_print("its own, often's total", &v);
    }
    free(s);
    hotfn_record_close(r);
}

static const check_test tests[] = {
    CHECK_TEST(rare_long_calls_of_others_are_known),
    CHECK_TEST(no_total_is_less_than_what_is_known_of_its_callees),
};
CHECK_MAIN(tests)
