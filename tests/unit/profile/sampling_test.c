/* SPDX-License-Identifier: MIT */
/* What a record tells of a sample, against streams of calls whose times are known.  The choice of calls and
 * all that is done with them afterwards is the library's; time is a number here, so that every run is the
 * same: outer calls inner a few times; each call costs something, and each timed call more, seen in it and outside of it;
 * what it costs outside differs from call to call. */
#include "live/sampling.h"

#include "../../property/random.h"
#include "profile/timed.h"

#include <inttypes.h>

enum { OUTER = 0, INNER = 2, FUNCTIONS = 3 };
enum {
    STREAMS = 1000,
    OUTER_CALLS = 6000,
    SAMPLE = 32,
    INSIDE = 20,
    OUTSIDE = 30,
    COLD = 300,
    PASS = 3
};
static const hfn_sample_rule rule = { SAMPLE * 16 * (INSIDE + OUTSIDE), 8 * SAMPLE, 64 * SAMPLE };

/* How long a call of inner takes. */
typedef enum stream_kind {
    STREAM_SMOOTH, /* all sorts                                        */
    STREAM_COLD,   /* the first ones much longer, as where caches fill */
    STREAM_RHYTHM, /* long and short in turn                           */
    STREAM_UNEVEN, /* some are long                                    */
    STREAM_KINDS
} stream_kind;

typedef struct timed_function {
    uint64_t calls, truth;
    uint64_t skip, mean; /* as hfn_time_gap */
    hfn_sample_seen seen;
    hfn_time_cell cell;
    hfn_time_node node;
    uint64_t histogram[HOTFN_HISTOGRAM_BUCKETS];
} timed_function;

typedef struct stream {
    stream_kind kind;
    random_source random, cost_random;
    uint64_t drawn;             /* the engine's random number            */
    uint64_t clock, true_clock; /* with and without what hooks cost      */
    uint64_t hooks;             /* what they cost so far                 */
    timed_function functions[FUNCTIONS];
} stream;

static uint64_t inner_ticks(stream *s)
{
    uint32_t number = (uint32_t)s->functions[INNER].calls;

    switch (s->kind) {
    case STREAM_COLD: return (number < 3000 ? 1000 : 150) + random_below(&s->random, 100);
    case STREAM_RHYTHM: return number % 64 < 32 ? 100 : 300;
    case STREAM_UNEVEN: return random_below(&s->random, 20) == 0 ? 2000 : 100;
    default: return 50 + random_below(&s->random, 300);
    }
}

/* As the stub and enter_sampled_node: is the call timed?  Then *stands_for says for how many. */
static bool begin(stream *s, timed_function *f, uint64_t *stands_for)
{
    uint32_t mean;

    f->calls++;
    if (f->skip-- > 0) {
        return false;
    }
    *stands_for = f->mean ? f->mean : 1;
    mean = hfn_sample_mean(&rule, f->cell.timed_calls, &f->seen);
    f->mean = mean;
    f->skip = hfn_sample_skip(&s->drawn, mean);
    f->node.calls += *stands_for;
    return true;
}

/* As leave and add_to_node. */
static void end(timed_function *f, uint64_t took, uint64_t within, uint64_t stands_for)
{
    hfn_sample_see(&rule, &f->seen, took);
    f->cell.timed_calls++;
    f->cell.total_ticks += took;
    f->cell.within_timed += within;
    f->cell.max_ticks = took > f->cell.max_ticks ? took : f->cell.max_ticks;
    f->node.timed_calls++;
    f->node.total_ticks += took * stands_for;
    f->node.within_timed += within * stands_for;
    f->node.spread += stands_for * (stands_for - 1);
    f->histogram[timed_bucket(took)] += stands_for;
}

static void work(stream *s, uint64_t ticks)
{
    s->clock += ticks;
    s->true_clock += ticks;
}

static void call(stream *s, uint32_t which)
{
    timed_function *f = &s->functions[which];
    uint64_t stands_for = 0, start, cost = 0, before, true_start = s->true_clock;
    bool is_timed = begin(s, f, &stands_for);

    if (is_timed) {
        cost = OUTSIDE +
               (f->cell.timed_calls < HFN_ALWAYS_TIMED ? 0 : random_below(&s->cost_random, COLD));
    }
    s->clock += cost + PASS;
    start = s->clock;
    before = s->hooks;
    s->clock += is_timed ? INSIDE : 0;
    if (which == INNER) {
        work(s, inner_ticks(s));
    }
    for (uint32_t i = which == OUTER ? random_below(&s->random, 15) : 0; i > 0; i--) {
        call(s, INNER);
    }
    if (which == OUTER) {
        work(s, 200 + random_below(&s->random, 800));
    }
    f->truth += s->true_clock - true_start;
    if (is_timed) {
        end(f, s->clock - start, s->hooks - before, stands_for);
    }
    s->hooks += is_timed ? cost + INSIDE + stands_for * PASS : 0;
}

/* ---- Into a record that is open, and what it tells then. */

static hotfn_record *open_model(const char *path, timed_model *m, const stream *s)
{
    hotfn_record *r = NULL;
    hfn_part *states;

    for (uint32_t i = 0; s && i < FUNCTIONS; i++) {
        m->calls[0][i] = s->functions[i].calls;
    }
    timed_write_counts(path, m, 1);
    timed_attach(path, m, 1);
    CHECK_EQ_I64(hotfn_record_open(&r, path, NULL, NULL), HOTFN_OK);
    r->times.header.flags = HOTFN_TIMING_TIMES | HOTFN_TIMING_HISTOGRAMS | HOTFN_TIMING_SAMPLED;
    states = &r->parts[HFN_SECTION_TIMING_STATES];
    states->byte_count = (uint64_t)r->function_count * sizeof(uint32_t);
    states->bytes = hfn_allocate_zeroed(&r->env, states->byte_count + 2);
    for (uint32_t i = 0; i < r->function_count; i++) {
        hfn_write_le32(states->bytes + 4 * i, HOTFN_TIMING_SAMPLE);
    }
    free(m);
    return r;
}

static hotfn_record *open_empty(const char *path, const stream *s)
{
    timed_model *m = calloc(1, sizeof *m);

    m->inside = INSIDE;
    m->outside = OUTSIDE;
    timed_enter(m, 0, OUTER);
    timed_call(m, 0, INNER, 100);
    timed_exit(m, 0);
    return open_model(path, m, s);
}

static void put_stream(hotfn_record *r, const stream *s)
{
    hfn_packed *h = &r->times.histograms;

    hfn_packed_finish(h);
    hfn_packed_init(h, &r->env);
    for (uint32_t i = 0; i < FUNCTIONS; i++) {
        CHECK(hfn_packed_append(h, s->functions[i].histogram, HOTFN_HISTOGRAM_BUCKETS) &&
              hfn_packed_end_row(h));
    }
    for (size_t i = 0; i < r->times.entry_count; i++) {
        hfn_time_entry *e = &r->times.entries[i];

        e->cell = s->functions[e->slot].cell;
        e->cell.histogram = e->slot + 1;
        r->totals[e->slot] = s->functions[e->slot].calls;
    }
    for (uint32_t i = 0; i < r->times.node_count; i++) {
        hfn_time_node *n = &r->times.nodes[i];
        const hfn_time_node *from = &s->functions[n->slot].node;

        n->calls = from->calls;
        n->timed_calls = from->timed_calls;
        n->total_ticks = from->total_ticks;
        n->within_timed = from->within_timed;
        n->spread = from->spread;
    }
    CHECK_EQ_I64(hfn_profile_sum_times(r), HOTFN_OK);
}

typedef struct verdict {
    double bias;  /* mean of (told - true) / true                          */
    double error; /* mean of what the record claims as one standard error, so too */
    uint32_t within_one, within_two; /* of STREAMS                        */
} verdict;

static void judge(verdict *v, uint64_t told, uint64_t error, uint64_t truth)
{
    uint64_t off = told > truth ? told - truth : truth - told;

    v->bias += ((double)told - (double)truth) / (double)truth / STREAMS;
    v->error += (double)error / (double)truth / STREAMS;
    v->within_one += off <= error;
    v->within_two += off <= 2 * error;
}

enum { OUTER_TOTAL, OUTER_SELF, INNER_TOTAL, FIGURES };

static void try_streams(hotfn_record *r, stream_kind kind, verdict v[FIGURES])
{
    for (uint32_t number = 0; number < STREAMS; number++) {
        stream s = { .kind = kind,
                     .random = random_seed(number + 1),
                     .cost_random = random_seed(number + 1000),
                     .drawn = number };
        hotfn_record_timing outer = HOTFN_RECORD_TIMING_INIT, inner = outer;

        for (uint32_t i = 0; i < OUTER_CALLS; i++) {
            call(&s, OUTER);
        }
        put_stream(r, &s);
        CHECK_EQ_I64(hotfn_record_get_timing(r, 0, &outer), HOTFN_OK);
        CHECK_EQ_I64(hotfn_record_get_timing(r, 4, &inner), HOTFN_OK); /* gamma comes last */
        judge(&v[OUTER_TOTAL], outer.total_ns, outer.total_error_ns, s.functions[OUTER].truth);
        judge(&v[OUTER_SELF], outer.self_ns, outer.self_error_ns,
              s.functions[OUTER].truth - s.functions[INNER].truth);
        judge(&v[INNER_TOTAL], inner.total_ns, inner.total_error_ns, s.functions[INNER].truth);
    }
}

/* A standard error holds the truth two times out of three, two of them 19 times out of 20; and their mean
 * is off by no more than chance has it (three standard errors of a mean of 1000). */
static void estimates_are_unbiased_and_as_near_as_they_claim(void)
{
    static const char *const kinds[] = { "smooth", "cold", "rhythm", "uneven" };
    static const char *const figures[] = { "outer total", "outer self", "inner total" };
    hotfn_record *r = open_empty(sample_path("sampled.hfr"), NULL);

    for (uint32_t kind = 0; kind < STREAM_KINDS; kind++) {
        verdict v[FIGURES] = { 0 };

        try_streams(r, kind, v);
        for (uint32_t i = 0; i < FIGURES; i++) {
            double chance = 3 * v[i].error / 31.6;
            bool right = CHECK(v[i].bias > -chance && v[i].bias < chance) &
                         CHECK(v[i].within_one >= STREAMS * 60 / 100) &
                         CHECK(v[i].within_two >= STREAMS * 91 / 100);
            if (!right) {
                printf(
                    "# %s, %s: bias %+.2f %%, claimed error %.2f %%, within one %u, two %u of %d\n",
                    kinds[kind], figures[i], 100 * v[i].bias, 100 * v[i].error, v[i].within_one,
                    v[i].within_two, STREAMS);
            }
        }
    }
    hotfn_record_close(r);
}

/* ---- Merged: two runs whose truths are known, as a sum and as a mean. */

enum { PAIRS = 60 };

typedef struct told_run {
    uint64_t truth, total, error, self_error;
} told_run;

static told_run write_run(const char *path, uint32_t number)
{
    stream s = { .kind = number % STREAM_KINDS,
                 .random = random_seed(number + 1),
                 .cost_random = random_seed(number + 1000),
                 .drawn = number };
    hotfn_record_timing t = HOTFN_RECORD_TIMING_INIT;
    hotfn_record *r;

    for (uint32_t i = 0; i < OUTER_CALLS; i++) {
        call(&s, OUTER);
    }
    r = open_empty(path, &s);
    put_stream(r, &s);
    CHECK_EQ_I64(hotfn_record_get_timing(r, 4, &t), HOTFN_OK);
    CHECK_EQ_I64(hfn_record_write(r, path, NULL), HOTFN_OK);
    hotfn_record_close(r);
    return (told_run){ s.functions[INNER].truth, t.total_ns, t.total_error_ns, t.self_error_ns };
}

static hotfn_record_timing merged(const char *const paths[2], uint32_t mode)
{
    char to[512];
    hotfn_record *r = NULL;
    hotfn_record_timing t = HOTFN_RECORD_TIMING_INIT;

    snprintf(to, sizeof to, "%s", sample_path("merged.hfr"));
    CHECK_EQ_I64(hotfn_record_merge(paths, 2, to, mode, NULL, NULL), HOTFN_OK);
    CHECK_EQ_I64(hotfn_record_open(&r, to, NULL, NULL), HOTFN_OK);
    CHECK_EQ_I64(hotfn_record_get_timing(r, 4, &t), HOTFN_OK);
    hotfn_record_close(r);
    unlink(to);
    return t;
}

static bool is_near(uint64_t got, double wanted)
{
    return CHECK((double)got > wanted - 3 && (double)got < wanted + 3);
}

/* Errors of runs that know nothing of each other add up by their squares. */
static void errors_of_merged_samples_add_up_by_their_squares(void)
{
    char one[512], two[512];
    const char *const paths[2] = { one, two };
    uint32_t within_one = 0, within_two = 0;

    snprintf(one, sizeof one, "%s", sample_path("one.hfr"));
    snprintf(two, sizeof two, "%s", sample_path("two.hfr"));
    for (uint32_t pair = 0; pair < PAIRS; pair++) {
        told_run a = write_run(one, 2 * pair), b = write_run(two, 2 * pair + 1);
        hotfn_record_timing sum = merged(paths, HOTFN_MERGE_SUM),
                            mean = merged(paths, HOTFN_MERGE_MEAN),
                            least = merged(paths, HOTFN_MERGE_MIN);
        double error = hfn_times_root((double)a.error * a.error + (double)b.error * b.error);
        uint64_t truth = a.truth + b.truth;
        uint64_t off = sum.total_ns > truth ? sum.total_ns - truth : truth - sum.total_ns;

        CHECK(a.error > 0 && b.error > 0);
        CHECK_EQ_U64(sum.timing, HOTFN_TIMING_SAMPLE);
        if (!is_near(sum.total_ns, (double)a.total + b.total) ||
            !is_near(sum.total_error_ns, error) || !is_near(mean.total_error_ns, error / 2) ||
            !is_near(mean.total_ns, ((double)a.total + b.total) / 2) ||
            !is_near(least.total_error_ns, a.total < b.total ? a.error : b.error)) {
            printf("# pair %u: totals %" PRIu64 " and %" PRIu64 ", errors %" PRIu64 " and %" PRIu64
                   "; sum %" PRIu64 " with %" PRIu64 ", mean's error %" PRIu64 "\n",
                   pair, a.total, b.total, a.error, b.error, sum.total_ns, sum.total_error_ns,
                   mean.total_error_ns);
        }
        within_one += off <= sum.total_error_ns;
        within_two += off <= 2 * sum.total_error_ns;
    }
    if (!(CHECK(within_one >= PAIRS * 60 / 100) & CHECK(within_two >= PAIRS * 91 / 100))) {
        printf("# within one %u, two %u of %d\n", within_one, within_two, PAIRS);
    }
    unlink(one);
    unlink(two);
}

/* ---- Counted-only functions between: a sample's tree has places of them, without calls or times. */

enum { BETWEEN = 1 };

static void put_node(hotfn_record *r, uint32_t slot, uint32_t parent_slot, uint64_t calls,
                     uint64_t ticks)
{
    for (uint32_t i = 0; i < r->times.node_count; i++) {
        hfn_time_node *n = &r->times.nodes[i];
        uint32_t parent = n->parent == UINT32_MAX ? UINT32_MAX : r->times.nodes[n->parent].slot;

        if (n->slot != slot || parent != parent_slot) {
            continue;
        }
        n->calls = n->timed_calls = calls;
        n->total_ticks = ticks;
        n->within_timed = n->spread = 0;
    }
}

/* outer works 400, calls between, which calls inner; that works 300 and calls outer, which works 300 more. */
static hotfn_record *open_circle(const char *path)
{
    timed_model *m = calloc(1, sizeof *m);
    const uint64_t calls[FUNCTIONS] = { 2, 1, 1 };
    hotfn_record *r;
    stream s = { .kind = STREAM_SMOOTH };

    for (uint32_t i = 0; i < FUNCTIONS; i++) {
        s.functions[i].calls = calls[i];
    }
    timed_enter(m, 0, OUTER);
    timed_enter(m, 0, BETWEEN);
    timed_call(m, 0, INNER, 600);
    timed_exit(m, 0);
    timed_exit(m, 0);
    timed_enter(m, 0, INNER);
    timed_call(m, 0, OUTER, 300);
    timed_exit(m, 0);
    r = open_model(path, m, &s);
    put_node(r, OUTER, UINT32_MAX, 1, 1000);
    put_node(r, BETWEEN, OUTER, 0, 0);
    put_node(r, INNER, BETWEEN, 1, 600);
    put_node(r, INNER, UINT32_MAX, 0, 0);
    put_node(r, OUTER, INNER, 1, 300);
    for (size_t i = 0; i < r->times.entry_count; i++) { /* that one is in the first */
        if (r->times.entries[i].slot == OUTER) {
            r->times.entries[i].cell =
                (hfn_time_cell){ .timed_calls = 2, .total_ticks = 1000, .self_ticks = 700 };
        }
    }
    CHECK_EQ_I64(hfn_profile_sum_times(r), HOTFN_OK);
    return r;
}

static void what_a_counted_only_function_calls_is_not_its_callers_own(void)
{
    hotfn_record *r = open_circle(sample_path("circle.hfr"));
    hotfn_record_time_info info = HOTFN_RECORD_TIME_INFO_INIT;
    hotfn_record_timing outer = HOTFN_RECORD_TIMING_INIT, inner = outer;

    CHECK_EQ_I64(hotfn_record_get_timing(r, 0, &outer), HOTFN_OK);
    CHECK_EQ_I64(hotfn_record_get_timing(r, 4, &inner), HOTFN_OK);
    CHECK_EQ_U64(inner.total_ns, 600);
    CHECK_EQ_U64(inner.self_ns, 300);
    CHECK_EQ_U64(outer.total_ns, 1000); /* it is one circle with inner */
    CHECK_EQ_U64(outer.self_ns, 700);
    CHECK_EQ_I64(hotfn_record_get_time_info(r, &info), HOTFN_OK);
    CHECK_EQ_U64(info.edge_count, 3); /* how often outer called between is not known */
    for (uint32_t i = 0; i < info.edge_count; i++) {
        hotfn_record_edge e = HOTFN_RECORD_EDGE_INIT;
        CHECK_EQ_I64(hotfn_record_get_edge(r, i, &e), HOTFN_OK);
        CHECK_EQ_U64(e.calls, 1);
        CHECK(e.total_ns == 300 || e.total_ns == 600 || e.total_ns == 1000);
    }
    hotfn_record_close(r);
}

static void a_gap_is_as_long_as_its_mean(void)
{
    uint64_t random = 1;

    for (uint32_t mean = 1; mean <= 1000; mean = 3 * mean + 1) {
        uint64_t sum = 0;

        for (uint32_t i = 0; i < 20000; i++) {
            sum += hfn_sample_skip(&random, mean) + UINT64_C(1);
        }
        CHECK(sum > 19700 * (uint64_t)mean && sum < 20300 * (uint64_t)mean);
    }
}

/* Of so many calls that took so many ticks in all, and whose squares sum up to so much. */
static uint32_t mean_of(uint64_t timed, uint64_t ticks, uint64_t squares)
{
    const hfn_sample_rule r = { 25600, 128, 1024 };
    const hfn_sample_seen seen = { ticks, squares };

    return hfn_sample_mean(&r, timed, &seen);
}

static void long_calls_are_timed_more_often(void)
{
    const hfn_sample_rule one = { 800, 1, 1 };
    const hfn_sample_seen short_ones = { 100, 10 };

    CHECK_EQ_U64(mean_of(999, 999, 999), 1);            /* the first ones all */
    CHECK_EQ_U64(mean_of(1000, 800000, 640000000), 32); /* 800 ticks each */
    CHECK_EQ_U64(mean_of(1000, 100000, 20000000), 128);
    CHECK_EQ_U64(mean_of(1000, 0, 0), 128);
    CHECK_EQ_U64(mean_of(1000, 30000000, 900000000000), 1);
    CHECK_EQ_U64(hfn_sample_mean(&one, 1000, &short_ones), 1);
}

static void what_is_known_is_timed_less_often(void)
{
    const hfn_sample_rule r = { 25600, 128, 1024 };
    hfn_sample_seen seen = { 0, 0 };
    uint32_t calls = 0;

    CHECK_EQ_U64(mean_of(10000, 400000, 16000000), 512);  /* 40 ticks each: 1 % */
    CHECK_EQ_U64(mean_of(10000, 100000, 1000000), 1024);  /* 10: no fewer than that */
    CHECK_EQ_U64(mean_of(10000, 400000, 400000000), 128); /* some are long */
    CHECK_EQ_U64(mean_of(10000, 400000, UINT64_MAX), 128);
    CHECK_EQ_U64(mean_of(10000, 8000000, 6400000000), 32); /* 800 each: as ever */
    for (; calls < 1000 || hfn_sample_mean(&r, calls, &seen) == 128; calls++) {
        hfn_sample_see(&r, &seen, calls & 1 ? 1 : 199); /* 2000 of them: 3 % */
    }
    CHECK(calls > 1024 && calls < 3000);
    hfn_sample_see(&r, &seen, 1000000); /* which waited */
    CHECK_EQ_U64(hfn_sample_mean(&r, calls + 1, &seen), 128);
}

static void what_is_seen_does_not_run_over(void)
{
    const hfn_sample_rule r = { 25600, 128, 1024 };
    hfn_sample_seen seen = { 0, 0 };

    hfn_sample_see(&r, &seen, 100000000);
    CHECK_EQ_U64(seen.ticks, 25600); /* no matter how long it waited */
    CHECK_EQ_U64(seen.squares, UINT64_C(10000000000000000));
    for (uint32_t i = 0; i < 4; i++) {
        hfn_sample_see(&r, &seen, UINT64_MAX);
        CHECK(seen.squares >= UINT64_C(0xfffffffe00000001));
    }
    CHECK_EQ_U64(seen.squares, UINT64_MAX);
    hfn_sample_see(&r, &seen, 1);
    CHECK_EQ_U64(seen.squares, UINT64_MAX);
}

/* Where a budget is to be kept: how often a function is timed before anybody looked at it. */
static void what_begins_slowly_is_timed_seldom(void)
{
    uint64_t timed = 0;

    for (uint64_t calls = 0; calls < 1000000; calls += hfn_sample_begin(timed++)) {
        CHECK(calls >= 8 || timed == calls); /* the first ones all */
    }
    CHECK(timed > 120 && timed < 160); /* 8 for each doubling */
    CHECK_EQ_U64(hfn_sample_begin(UINT64_MAX), 1 << 20);
}

static const check_test tests[] = {
    CHECK_TEST(what_begins_slowly_is_timed_seldom),
    CHECK_TEST(estimates_are_unbiased_and_as_near_as_they_claim),
    CHECK_TEST(errors_of_merged_samples_add_up_by_their_squares),
    CHECK_TEST(what_a_counted_only_function_calls_is_not_its_callers_own),
    CHECK_TEST(a_gap_is_as_long_as_its_mean),
    CHECK_TEST(long_calls_are_timed_more_often),
    CHECK_TEST(what_is_known_is_timed_less_often),
    CHECK_TEST(what_is_seen_does_not_run_over),
};

CHECK_MAIN(tests)
