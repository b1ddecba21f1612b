/* SPDX-License-Identifier: MIT */
/* Totals of functions that recurse, in a sample: what is told is right within what is claimed, or says that it is not known. */
#include "profile/sampled.h"

enum { STREAMS = 100, CALLS = 8000, DEPTH_MOST = 12 };

typedef void story(sampled_stream *s);

static void work(sampled_stream *s)
{
    s->clock += 100 + random_below(&s->random, 200);
}

/* One that calls itself. */
static void call_itself(sampled_stream *s)
{
    sampled_enter(s, 0);
    work(s);
    for (uint32_t i = random_below(&s->random, 3); i > 0 && s->depth < DEPTH_MOST; i--) {
        call_itself(s);
    }
    sampled_exit(s);
}

/* 0 calls 1, which calls 0. */
static void call_each_other(sampled_stream *s)
{
    sampled_enter(s, s->depth % 2);
    work(s);
    for (uint32_t i = random_below(&s->random, 3); i > 0 && s->depth < DEPTH_MOST; i--) {
        call_each_other(s);
    }
    sampled_exit(s);
}

/* As often, and seldom by 2, each of whose calls is timed: it calls 0 too, but never out of a call of 0 that it made. */
static void call_seldom(sampled_stream *s)
{
    sampled_enter(s, 0);
    work(s);
    if (random_below(&s->random, 100) == 0) {
        sampled_enter(s, 2);
        s->clock += 50000 + random_below(&s->random, 100000);
        sampled_call(s, 0, 150);
        sampled_exit(s);
    }
    sampled_exit(s);
}

/* 1 is called by 0 and calls it in turn; once in a while it is called within itself. */
static void call_hardly_in_itself(sampled_stream *s)
{
    sampled_enter(s, 0);
    work(s);
    sampled_enter(s, 1);
    work(s);
    if (random_below(&s->random, 1000) == 0) {
        call_hardly_in_itself(s);
    }
    sampled_exit(s);
    sampled_exit(s);
}

static void try_streams(story *tell, const char *const *pairs, sampled_verdict v[SAMPLED_FUNCTIONS])
{
    hotfn_record *r = sampled_open(sample_path("totals.hfr"), pairs);
    sampled_stream *s = malloc(sizeof *s);

    memset(v, 0, SAMPLED_FUNCTIONS * sizeof *v);
    for (uint32_t number = 0; number < STREAMS; number++) {
        memset(s, 0, sizeof *s);
        s->clock = 1000;
        s->random = random_seed(number + 1);
        s->drawn = number;
        for (uint32_t i = 0; i < CALLS; i++) {
            tell(s);
        }
        sampled_put(r, s);
        for (uint32_t i = 0; i < SAMPLED_FUNCTIONS; i++) {
            hotfn_record_timing t = sampled_told(r, i);

            if (s->functions[i].calls > 0) {
                sampled_judge(&v[i], t.total_ns, t.total_error_ns, s->functions[i].truth);
            }
        }
    }
    free(s);
    hotfn_record_close(r);
}

/* Within two errors 19 times out of 20; a mean error of so much at most. */
static void check(const char *what, const sampled_verdict *v, double most_error)
{
    if (!(CHECK(v->within_two + v->unknown >= STREAMS * 91 / 100) &
          CHECK(v->error <= most_error * STREAMS))) {
        sampled_print(what, v);
    }
}

static void who_calls_itself_has_the_error_of_its_outermost_calls(void)
{
    static const char *const pairs[] = { "00", NULL };
    sampled_verdict v[SAMPLED_FUNCTIONS];

    try_streams(call_itself, pairs, v);
    check("calls itself", &v[0], 0.15);
    CHECK_EQ_U64(v[0].unknown, 0);
    CHECK(v[0].bias > -0.03 * STREAMS && v[0].bias < 0.03 * STREAMS);
}

static void a_circle_is_known_where_it_is_entered(void)
{
    static const char *const pairs[] = { "01", "10", NULL };
    sampled_verdict v[SAMPLED_FUNCTIONS];

    try_streams(call_each_other, pairs, v);
    check("entered by it", &v[0], 0.15);
    CHECK_EQ_U64(v[0].unknown, 0);
    CHECK(v[0].bias > -0.03 * STREAMS && v[0].bias < 0.03 * STREAMS);
    check("called within", &v[1], 1);
    CHECK(v[1].bias > -0.03 * STREAMS); /* the most that it can be */
    try_streams(call_hardly_in_itself, pairs, v);
    check("hardly in itself", &v[1], 0.1);
    CHECK_EQ_U64(v[1].unknown, 0);
}

static void who_is_always_timed_is_known_in_a_circle_too(void)
{
    static const char *const pairs[] = { "02", "20", NULL };
    sampled_verdict v[SAMPLED_FUNCTIONS];

    try_streams(call_seldom, pairs, v);
    CHECK(v[2].off == 0 && v[2].error == 0);
    check("calls it", &v[0], 0.3);
}

/* 0 calls 1, and nearly all that 1 does is to call 0: whether 1 is called in there again is not known of any call. */
static void what_is_not_known_says_so(void)
{
    static const char *const pairs[] = { "01", "10", NULL };
    hotfn_record *r = sampled_open(sample_path("totals.hfr"), pairs);
    sampled_stream *s = calloc(1, sizeof *s);
    hotfn_record_timing t;

    s->clock = 1000;
    for (uint32_t i = 0; i < CALLS; i++) {
        sampled_enter(s, 0);
        sampled_enter(s, 1);
        sampled_call(s, 0, 200);
        sampled_exit(s);
        s->clock += 100;
        sampled_exit(s);
    }
    sampled_put(r, s);
    t = sampled_told(r, 1);
    CHECK(t.total_error_ns == HOTFN_ERROR_UNKNOWN);
    CHECK(t.total_ns >= s->functions[1].truth * 97 / 100);
    CHECK(t.self_error_ns <= t.total_ns);
    CHECK(sampled_told(r, 0).total_error_ns < t.total_ns / 5);
    free(s);
    hotfn_record_close(r);
}

/* As an interpreter that runs in itself: one long call six deep, and thousands of short ones.  Those within each other take
 * longer than the thread was there, and are not cut down for that. */
static void calls_in_each_other_may_take_longer_than_the_run(void)
{
    static const char *const pairs[] = { "01", "10", NULL };
    hotfn_record *r = sampled_open(sample_path("totals.hfr"), pairs);
    sampled_stream *s = calloc(1, sizeof *s);
    uint64_t inner;

    s->clock = 1000;
    for (uint32_t depth = 0; depth < 6; depth++) {
        sampled_enter(s, depth % 2);
    }
    for (uint32_t i = 0; i < CALLS; i++) {
        sampled_enter(s, 0);
        sampled_call(s, 1, 200);
        sampled_exit(s);
    }
    s->clock += 5000000;
    for (uint32_t depth = 0; depth < 6; depth++) {
        sampled_exit(s);
    }
    r->times.threads[0].first_tick = 1000;
    r->times.threads[0].last_tick = s->clock;
    sampled_put(r, s);
    inner = sampled_told(r, 1).self_ns;
    CHECK(inner >
          3500000); /* 6,600,000; each long call is told as long as its function's count has it */
    CHECK(sampled_told(r, 0).self_ns < 3300000);
    free(s);
    hotfn_record_close(r);
}

static const check_test tests[] = {
    CHECK_TEST(who_calls_itself_has_the_error_of_its_outermost_calls),
    CHECK_TEST(a_circle_is_known_where_it_is_entered),
    CHECK_TEST(who_is_always_timed_is_known_in_a_circle_too),
    CHECK_TEST(what_is_not_known_says_so),
    CHECK_TEST(calls_in_each_other_may_take_longer_than_the_run),
};
CHECK_MAIN(tests)
