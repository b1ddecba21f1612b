/* SPDX-License-Identifier: MIT */
/* A function's times, as a query returns them: nanoseconds, errors, percentiles; a sample is scaled
 * to all calls. */
#include "base/status.h"
#include "profile/profile.h"

#define COST_UNIT 256.0 /* costs in the header are given in 1/256 ticks */

/* ---- Ticks. */

uint64_t hfn_times_ns(const hotfn_record *r, uint64_t ticks)
{
    return hfn_ticks_to_ns(&r->times.header, ticks);
}

/* Newton's method: the library needs nothing of libm.  Half the exponent of x (IEEE 754, binary64)
 * gives a first root that is at most 7 % off, so four steps reach the precision of a double. */
double hfn_times_root(double x)
{
    const uint64_t half_bias = 1023ull << 51;
    uint64_t bits;
    double root;

    if (!(x > 0)) {
        return 0;
    }
    memcpy(&bits, &x, sizeof bits);
    bits = (bits >> 1) + half_bias;
    memcpy(&root, &bits, sizeof root);
    for (int i = 0; i < 4; i++) {
        root = (root + x / root) / 2;
    }
    return root;
}

static uint64_t add_saturated(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* ---- How a function was timed. */

static uint32_t timing_word(const hotfn_record *r, uint32_t function)
{
    const hfn_part *states = &r->parts[HFN_SECTION_TIMING_STATES];

    if ((uint64_t)function * sizeof(uint32_t) + sizeof(uint32_t) > states->byte_count) {
        return HFN_TIMING_WORD(HOTFN_TIMING_FULL, 0);
    }
    return hfn_read_le32(states->bytes + (uint64_t)function * sizeof(uint32_t));
}

static void fill_reason(const hotfn_record *r, uint32_t reason, hotfn_record_timing *t)
{
    uint64_t known = r->parts[HFN_SECTION_REASONS].byte_count / HFN_REASON_BYTES;

    if (reason != 0 && reason < known) {
        const uint8_t *at = hfn_record_get_element(r, HFN_SECTION_REASONS, reason);

        t->reason = hfn_record_get_text(r, hfn_read_le32(at + HFN_REASON_NAME));
        t->reason_text = hfn_record_get_text(r, hfn_read_le32(at + HFN_REASON_TEXT));
    }
}

/* ---- Histograms. */

static uint64_t get_bucket_begin(uint32_t bucket)
{
    uint32_t shift = bucket / 32 > 1 ? bucket / 32 - 1 : 0;

    return (uint64_t)(bucket - shift * 32) << shift;
}

/* The histograms of a sum, one for each call; *at and *before are 0 at first.  Threads may share a
 * histogram.  False: no more. */
static bool next_histogram(const hotfn_record *r, const hfn_slot_sum *sum, uint32_t *at,
                           uint32_t *before, hfn_span *row)
{
    const hfn_times *t = &r->times;

    while (*at < sum->entry_count) {
        uint32_t number =
            t->entries[r->sums->entry_order[sum->first_entry + (*at)++]].cell.histogram;

        if (number != 0 && number != *before) {
            *before = number;
            *row = hfn_packed_row(&t->histograms, number - 1);
            return true;
        }
    }
    return false;
}

uint64_t hfn_times_add_histogram(const hotfn_record *r, const hfn_slot_sum *sum, uint64_t *counts)
{
    uint32_t at = 0, before = 0;
    uint64_t total = 0;
    hfn_span row;

    while (next_histogram(r, sum, &at, &before, &row)) {
        total = add_saturated(total, hfn_unpack_add(row, counts, HOTFN_HISTOGRAM_BUCKETS));
    }
    return total;
}

/* The number of buckets up to the last one with a call. */
static uint32_t count_used_buckets(const hotfn_record *r, const hfn_slot_sum *sum)
{
    uint32_t at = 0, before = 0, used = 0;
    uint64_t bucket, count;
    hfn_span row;

    while (next_histogram(r, sum, &at, &before, &row)) {
        hfn_unpacker u = { row, 0, 0 };

        while (hfn_unpack_next(&u, HOTFN_HISTOGRAM_BUCKETS, &bucket, &count)) {
            used = bucket >= used ? (uint32_t)bucket + 1 : used;
        }
    }
    return used;
}

/* The rank, counted from 1, of the call whose length is this quantile of all calls. */
static uint64_t find_rank(uint64_t total, double part)
{
    uint64_t rank = (uint64_t)(part * (double)total) + 1;

    return rank > total ? total : rank;
}

/* The length in ticks below which the clock measures no length of a call; 0: it measures all. */
static uint64_t shortest_call(const hotfn_record *r)
{
    return r->times.header.tick_ticks;
}

/* The length of a call in the middle of the bucket.  *is_below: it is too short to be measured, and
 * the shortest length that can be is returned. */
static uint64_t bucket_ns(const hotfn_record *r, uint32_t bucket, bool *is_below)
{
    uint64_t ticks =
        get_bucket_begin(bucket) + (get_bucket_begin(bucket + 1) - get_bucket_begin(bucket)) / 2;

    *is_below = ticks < shortest_call(r);
    return hfn_times_ns(r, *is_below ? shortest_call(r) : ticks);
}

static void fill_percentiles(const hotfn_record *r, const hfn_slot_sum *sum, hotfn_record_timing *t)
{
    const struct {
        double part;
        uint32_t below;
        uint64_t *ns;
    } wanted[] = { { 0.50, HOTFN_BELOW_P50, &t->p50_ns },
                   { 0.90, HOTFN_BELOW_P90, &t->p90_ns },
                   { 0.99, HOTFN_BELOW_P99, &t->p99_ns } };
    uint64_t counts[HOTFN_HISTOGRAM_BUCKETS], total, seen = 0;
    uint32_t used = count_used_buckets(r, sum), bucket = 0;

    memset(counts, 0, used * sizeof *counts);
    total = hfn_times_add_histogram(r, sum, counts);
    for (size_t i = 0; total > 0 && i < sizeof wanted / sizeof wanted[0]; i++) {
        uint64_t rank = find_rank(total, wanted[i].part), ns;
        bool is_below;

        while (bucket < used && seen < rank) {
            seen = add_saturated(seen, counts[bucket++]);
        }
        ns = bucket_ns(r, bucket - 1, &is_below);
        t->below |= is_below ? wanted[i].below : 0;
        *wanted[i].ns = is_below || ns < t->max_ns ? ns : t->max_ns;
    }
}

/* ---- A function. */

/* Ticks come at random, so their number in a period has a variance equal to its mean (Poisson).  A
 * period without a tick is assumed to be at most as long as the mean interval. */
static double tick_variance(const hotfn_record *r, uint64_t ns)
{
    double interval = hfn_times_tick_error_ns(&r->times.header);

    return interval * ((double)ns > interval ? (double)ns : interval);
}

uint64_t hfn_times_random_error_ns(const hotfn_record *r, uint64_t ns)
{
    return (uint64_t)hfn_times_root(tick_variance(r, ns));
}

/* The processor executes a hook and the function together, and a tick that arrives then may be
 * charged to either: one of a call's two hooks, half of its cost, is uncertain in the function's
 * own time.  A quarter of the cost lies before the first and behind the last load of the tick, and
 * belongs to the caller (docs/design/timing.md). */
static uint64_t tick_error_ns(const hotfn_record *r, uint64_t ns, uint64_t calls, uint64_t callees)
{
    const hfn_time_header *h = &r->times.header;
    double cost = h->cost_outside_ticks / COST_UNIT * 1e9 / (double)h->ticks_per_second;
    double hooks = cost * ((double)calls / 2 + (double)callees / 4);

    return (uint64_t)hfn_times_root(tick_variance(r, ns) + hooks * hooks);
}

/* The error of a merged time: the root of the sum of the runs' squares, if it is known in all. */
static uint64_t error_of(double squares)
{
    const double unknown = (double)HOTFN_ERROR_UNKNOWN;

    return squares < unknown * unknown / 4 ? (uint64_t)hfn_times_root(squares)
                                           : HOTFN_ERROR_UNKNOWN;
}

/* The time that was subtracted for hooks: `inside` times the cost in the called function itself,
 * and `outside` times the cost in its caller. */
static uint64_t subtracted_ns(const hotfn_record *r, uint64_t inside, uint64_t outside)
{
    const hfn_time_header *h = &r->times.header;
    double ticks =
        ((double)inside * h->cost_inside_ticks + (double)outside * h->cost_outside_ticks) /
        COST_UNIT;

    return (uint64_t)(ticks * 1e9 / (double)h->ticks_per_second);
}

static void fill_errors(const hotfn_record *r, const hfn_slot_sum *sum, hotfn_record_timing *t)
{
    uint64_t callees =
        sum->within_timed > sum->timed_calls ? sum->within_timed - sum->timed_calls : 0;

    if (r->times.header.flags & HOTFN_TIMING_ERRORS) {
        t->total_error_ns = error_of(sum->total_squares);
        t->self_error_ns = error_of(sum->self_squares);
    } else if (r->times.header.tick_ticks) {
        t->total_error_ns = tick_error_ns(r, t->total_ns, sum->timed_calls, callees);
        t->self_error_ns = tick_error_ns(r, t->self_ns, sum->timed_calls, sum->callee_timed);
    } else {
        t->total_error_ns = subtracted_ns(r, sum->within_timed, callees);
        t->self_error_ns = subtracted_ns(r, sum->timed_calls, sum->callee_timed);
    }
}

/* All calls of a function are known, and the timed ones represent about as many: their sum is
 * fitted to that number.  What a function did itself is not known, and merged records have fitted
 * sums. */
static void fill_sampled(const hotfn_record *r, const hfn_slot_sum *sum, hotfn_record_timing *t)
{
    double ns_a_tick = 1e9 / (double)r->times.header.ticks_per_second, fit;

    if (r->times.header.flags & HOTFN_TIMING_ERRORS) {
        fill_errors(r, sum, t);
        return;
    }
    t->self_ns = 0;
    t->self_error_ns = HOTFN_ERROR_UNKNOWN;
    fit = sum->weight > 0 ? (double)sum->calls / (double)sum->weight : 1;
    fit *= ns_a_tick;
    t->total_ns = (uint64_t)((double)sum->total_ticks * fit);
    t->total_error_ns = (uint64_t)(hfn_times_root(sum->sample_squares) * fit);
    if (t->total_ns == 0 && t->total_error_ns == 0) {
        t->total_error_ns = (uint64_t)((double)sum->calls * hfn_times_ns(r, shortest_call(r)));
    }
}

static void fill_times(const hotfn_record *r, const hfn_slot_sum *sum, hotfn_record_timing *t)
{
    t->timed_calls = sum->timed_calls;
    t->open_calls = sum->open_calls;
    t->self_alloc = sum->self_alloc;
    t->total_alloc = sum->total_alloc;
    if (sum->timed_calls == 0 && sum->self_ticks == 0 && sum->waited_ticks == 0) {
        t->total_error_ns = t->self_error_ns =
            t->timing == HOTFN_TIMING_SAMPLE ? HOTFN_ERROR_UNKNOWN : 0;
        return;
    }
    t->total_ns = hfn_times_ns(r, sum->total_ticks);
    t->self_ns = hfn_times_ns(r, sum->self_ticks);
    t->max_ns = hfn_times_ns(r, sum->max_ticks);
    t->waited_ns = hfn_times_ns(r, sum->waited_ticks);
    t->total_waited_ns = hfn_times_ns(r, sum->total_waited_ticks);
    fill_percentiles(r, sum, t);
    if (t->timing == HOTFN_TIMING_SAMPLE) {
        fill_sampled(r, sum, t);
    } else {
        fill_errors(r, sum, t);
    }
}

void hfn_times_fill_timing(const hotfn_record *r, uint32_t function, const hfn_slot_sum *sum,
                           hotfn_record_timing *t)
{
    uint32_t word = timing_word(r, function);

    t->timing = HFN_STATE_OF(word) <= HOTFN_TIMING_SAMPLE ? HFN_STATE_OF(word) : 0;
    fill_reason(r, HFN_REASON_OF(word), t);
    fill_times(r, sum, t);
}

hotfn_status hotfn_record_get_timing(const hotfn_record *r, uint32_t function,
                                     hotfn_record_timing *out)
{
    if (!r) {
        return HOTFN_E_OPTION;
    }

    hotfn_record_timing t = HOTFN_RECORD_TIMING_INIT;
    uint32_t slot;

    if (function >= r->function_count) {
        return HOTFN_E_NOT_FOUND;
    }
    t.reason = t.reason_text = "";
    slot = hfn_read_le32(hfn_record_get_element(r, HFN_SECTION_SLOTS, function));
    if (r->times_note[0]) {
        t.reason = "not-read";
        t.reason_text = r->times_note;
    } else if (!r->times.present) {
        t.reason = "not-timed";
        t.reason_text = "the run counted only (--mode time)";
    } else if (slot >= r->slot_count) {
        t.reason = "not-counted";
        t.reason_text = "it is not hooked";
    } else {
        hfn_times_fill_timing(r, function, &r->sums->slots[slot], &t);
    }
    return hfn_copy_result(out, &t, sizeof t);
}

hotfn_status hotfn_record_get_histogram(const hotfn_record *r, uint32_t function, uint64_t *counts)
{
    if (!r || !counts) {
        return HOTFN_E_OPTION;
    }

    uint32_t slot;

    if (function >= r->function_count) {
        return HOTFN_E_NOT_FOUND;
    }
    memset(counts, 0, HOTFN_HISTOGRAM_BUCKETS * sizeof *counts);
    slot = hfn_read_le32(hfn_record_get_element(r, HFN_SECTION_SLOTS, function));
    if (r->times.present && slot < r->slot_count) {
        hfn_times_add_histogram(r, &r->sums->slots[slot], counts);
    }
    return HOTFN_OK;
}

double hotfn_record_get_bucket_ns(const hotfn_record *r, uint32_t bucket)
{
    if (!r) {
        return 0;
    }

    uint64_t rate = r->times.header.ticks_per_second;

    return rate == 0 || bucket > HOTFN_HISTOGRAM_BUCKETS
               ? 0
               : (double)get_bucket_begin(bucket) * 1e9 / (double)rate;
}
