/* SPDX-License-Identifier: MIT */
/* Answers about time: ticks become nanoseconds here, the hooks' own cost is taken out (never below
 * nothing), and what was sampled is scaled up to all calls. */
#include "base/status.h"
#include "profile/profile.h"

#define COST_UNIT 256u /* costs are given in 1/256 ticks */

/* ---- Ticks. */

uint64_t hfn_times_ns(const hotfn_record *r, uint64_t ticks)
{
    uint64_t rate = r->times.header.ticks_per_second;
    double ns;

    if (ticks < UINT64_MAX / 1000000000u) {
        return ticks * 1000000000u / rate;
    }
    ns = (double)ticks * 1e9 / (double)rate;
    return ns < 1.8e19 ? (uint64_t)ns : UINT64_MAX;
}

uint64_t hfn_times_less_cost(const hotfn_record *r, uint64_t ticks, uint64_t inside,
                             uint64_t outside)
{
    const hfn_time_header *h = &r->times.header;
    double cost =
        ((double)inside * h->cost_inside_ticks + (double)outside * h->cost_outside_ticks) /
        COST_UNIT;

    if (r->is_raw) {
        return ticks;
    }
    return cost < (double)ticks ? ticks - (uint64_t)cost : 0;
}

/* Its nodes hold what the timed calls stand for. */
static bool is_sample(const hotfn_record *r)
{
    return (r->times.header.flags & HOTFN_TIMING_SAMPLED) != 0;
}

/* Of calls that saw only the inner part of their own cost, and all of what happened within. */
uint64_t hfn_times_less_hooks(const hotfn_record *r, uint64_t ticks, uint64_t within,
                              uint64_t outermost)
{
    if (!is_sample(r)) {
        return hfn_times_less_cost(r, ticks, within, within > outermost ? within - outermost : 0);
    }
    if (!r->is_raw) {
        ticks -= within < ticks ? within : ticks;
    }
    return hfn_times_less_cost(r, ticks, outermost, 0);
}

static uint64_t add(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static uint64_t times(uint64_t value, double factor)
{
    double all = (double)value * factor;

    return all < 1.8e19 ? (uint64_t)(all + 0.5) : UINT64_MAX;
}

/* Where no node says what a timed call stands for. */
static uint64_t scale(uint64_t ticks, uint64_t calls, uint64_t timed)
{
    return timed == 0 || timed >= calls ? ticks : times(ticks, (double)calls / (double)timed);
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

/* ---- Estimates of the tree's parts. */

uint64_t hfn_times_scaled(const hotfn_record *r, uint32_t slot, uint64_t value)
{
    const hfn_slot_sum *sum = &r->sums->slots[slot];

    if (!is_sample(r) || sum->stood_for == 0) {
        return value;
    }
    return times(value, (double)sum->calls / (double)sum->stood_for);
}

uint64_t hfn_times_cut(const hotfn_record *r, uint32_t slot, uint64_t ticks)
{
    ticks = hfn_times_scaled(r, slot, ticks);
    return slot < r->sums->slot_count && r->sums->slots[slot].cut < 1
               ? times(ticks, r->sums->slots[slot].cut)
               : ticks;
}

double hfn_times_node_cut(const hotfn_record *r, uint32_t node)
{
    return r->sums->slots[r->times.nodes[node].slot].cut * r->sums->nodes[node].cut;
}

double hfn_times_node_raw(const hotfn_record *r, uint32_t node)
{
    const hfn_time_node *n = &r->times.nodes[node];
    double ticks = (double)hfn_times_less_hooks(r, n->total_ticks, n->within_timed, n->calls) +
                   r->sums->nodes[node].more_ticks;

    return ticks < 0 ? 0 : ticks < 1.8e19 ? ticks : 1.8e19;
}

uint64_t hfn_times_node_ticks(const hotfn_record *r, uint32_t node)
{
    const hfn_time_node *n = &r->times.nodes[node];
    uint64_t below = r->sums->nodes[node].below_timed;

    if (!is_sample(r)) {
        return hfn_times_less_cost(r, n->total_ticks, add(n->timed_calls, below), below);
    }
    return times(hfn_times_scaled(r, n->slot, (uint64_t)hfn_times_node_raw(r, node)),
                 hfn_times_node_cut(r, node));
}

/* Sampled: a counted-only function, by which its callers came to others. */
static bool is_on_the_way(const hotfn_record *r, uint32_t node)
{
    return !hfn_time_was_called(&r->times.nodes[node]);
}

uint32_t hfn_times_next_callee(const hotfn_record *r, uint32_t node, uint32_t callee)
{
    const hfn_node_sum *nodes = r->sums->nodes;
    uint32_t next = callee == UINT32_MAX ? nodes[node].first_child : nodes[callee].next_sibling;

    for (;;) {
        while (next != UINT32_MAX && is_on_the_way(r, next) &&
               nodes[next].first_child != UINT32_MAX) {
            next = nodes[next].first_child;
        }
        if (next != UINT32_MAX || callee == UINT32_MAX) {
            return next;
        }
        callee = r->times.nodes[callee].parent;
        if (callee == node) {
            return UINT32_MAX;
        }
        next = nodes[callee].next_sibling;
    }
}

uint64_t hfn_times_callee_ticks(const hotfn_record *r, uint32_t node)
{
    uint64_t ticks = 0;

    for (uint32_t i = hfn_times_next_callee(r, node, UINT32_MAX); i != UINT32_MAX;
         i = hfn_times_next_callee(r, node, i)) {
        ticks = add(ticks, hfn_times_node_ticks(r, i));
    }
    return ticks;
}

/* ---- Histograms. */

uint64_t hfn_times_bucket_begin(uint32_t bucket)
{
    uint32_t shift = bucket / 32 > 1 ? bucket / 32 - 1 : 0;

    return (uint64_t)(bucket - shift * 32) << shift;
}

static void add_histograms(const hotfn_record *r, const hfn_slot_sum *sum, uint64_t *counts)
{
    const hfn_times *t = &r->times;
    uint32_t before = 0;

    for (uint32_t i = 0; i < sum->entry_count; i++) {
        const hfn_time_entry *e = &t->entries[r->sums->entry_order[sum->first_entry + i]];

        if (e->cell.histogram == 0 || e->cell.histogram == before) {
            continue; /* threads may share one */
        }
        before = e->cell.histogram;
        hfn_unpack_add(hfn_packed_row(&t->histograms, before - 1), counts, HOTFN_HISTOGRAM_BUCKETS);
    }
}

void hfn_times_histogram(const hotfn_record *r, const hfn_slot_sum *sum, uint64_t *counts)
{
    memset(counts, 0, HOTFN_HISTOGRAM_BUCKETS * sizeof *counts);
    add_histograms(r, sum, counts);
}

static uint64_t sum_up(const uint64_t *counts)
{
    uint64_t total = 0;

    for (uint32_t i = 0; i < HOTFN_HISTOGRAM_BUCKETS; i++) {
        total = add(total, counts[i]);
    }
    return total;
}

/* Of a call's ticks, as far as chance has a part in it; 0 without a histogram. */
static double variance_of(const hotfn_record *r, const hfn_slot_sum *sum)
{
    uint64_t counts[HOTFN_HISTOGRAM_BUCKETS] = { 0 };
    double total, mean = 0, squares = 0, gap = hfn_time_mean_gap(sum);

    add_histograms(r, sum, counts);
    total = (double)sum_up(counts);
    for (uint32_t i = 0; total > 0 && i < HOTFN_HISTOGRAM_BUCKETS; i++) {
        mean += (double)hfn_times_bucket_begin(i) * (double)counts[i] / total;
    }
    for (uint32_t i = 0; total > 0 && i < HOTFN_HISTOGRAM_BUCKETS; i++) {
        double off = (double)hfn_times_bucket_begin(i) - mean;

        if (!hfn_time_stand_for_themselves(counts[i], gap)) {
            squares += off * off * (double)counts[i] / total;
        }
    }
    return squares;
}

void hfn_times_find_variances(hotfn_record *r)
{
    for (uint32_t i = 0; is_sample(r) && i < r->sums->slot_count; i++) {
        if (r->sums->slots[i].spread > 0) {
            r->sums->slots[i].variance = variance_of(r, &r->sums->slots[i]);
        }
    }
}

/* The call of that rank, in the middle of its bucket. */
static uint64_t quantile(const uint64_t *counts, uint64_t total, double part)
{
    uint64_t rank = (uint64_t)(part * (double)total) + 1, seen = 0;

    if (rank > total) {
        rank = total;
    }

    for (uint32_t i = 0; i < HOTFN_HISTOGRAM_BUCKETS; i++) {
        seen = add(seen, counts[i]);
        if (seen >= rank && counts[i] > 0) {
            return hfn_times_bucket_begin(i) +
                   (hfn_times_bucket_begin(i + 1) - hfn_times_bucket_begin(i)) / 2;
        }
    }
    return 0;
}

/* One call's, without its own cost and its share of what its callees' hooks cost. */
uint64_t hfn_times_one_call(const hotfn_record *r, const hfn_slot_sum *sum, uint64_t ticks)
{
    uint64_t own = hfn_times_less_cost(r, ticks, 1, 0);
    uint64_t all = hfn_times_less_cost(r, sum->total_ticks, sum->outermost_timed, 0);
    uint64_t rest =
        hfn_times_less_hooks(r, sum->total_ticks, sum->within_timed, sum->outermost_timed);

    return r->is_raw || all == 0 || rest >= all
               ? own
               : (uint64_t)((double)own * ((double)rest / (double)all));
}

uint64_t hfn_times_one_call_ns(const hotfn_record *r, const hfn_slot_sum *sum, uint64_t ticks)
{
    return hfn_times_ns(r, hfn_times_one_call(r, sum, ticks));
}

static uint64_t within(uint64_t value, uint64_t low, uint64_t high)
{
    return value < low ? low : value > high ? high : value;
}

/* Ticks of the clock from which on a call has a length; 0: every call has one. */
static uint64_t shortest_call(const hotfn_record *r)
{
    return r->times.header.tick_ticks;
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
    uint64_t counts[HOTFN_HISTOGRAM_BUCKETS] = { 0 }, total;

    add_histograms(r, sum, counts);
    total = sum_up(counts);
    for (size_t i = 0; total > 0 && i < sizeof wanted / sizeof wanted[0]; i++) {
        uint64_t ticks = quantile(counts, total, wanted[i].part);
        if (ticks < shortest_call(r)) {
            t->below |= wanted[i].below;
            *wanted[i].ns = hfn_times_ns(r, shortest_call(r));
        } else {
            *wanted[i].ns = within(hfn_times_one_call_ns(r, sum, ticks), 0, t->max_ns);
        }
    }
}

/* ---- A function. */

static uint64_t error_ns(const hotfn_record *r, double ticks)
{
    return ticks < HFN_TICKS_UNKNOWN ? hfn_times_ns(r, (uint64_t)ticks) : HOTFN_ERROR_UNKNOWN;
}

static void fill_sampled(const hotfn_record *r, uint32_t slot, hotfn_record_timing *t)
{
    const hfn_slot_sum *sum = &r->sums->slots[slot];
    bool has_nodes = r->times.node_count > 0;
    uint64_t total =
        scale(hfn_times_less_hooks(r, sum->total_ticks, sum->within_timed, sum->outermost_timed),
              sum->calls, sum->timed_calls);
    uint64_t self =
        scale(hfn_times_less_cost(r, sum->self_ticks, sum->timed_calls, sum->callee_timed),
              sum->calls, sum->timed_calls);

    t->total_ns = hfn_times_ns(r, has_nodes ? hfn_times_sampled_ticks(r, sum) : total);
    t->self_ns =
        within(hfn_times_ns(r, has_nodes ? hfn_times_sampled_self(r, sum) : self), 0, t->total_ns);
    t->total_error_ns = error_ns(r, hfn_times_total_error(r, sum));
    t->self_error_ns = error_ns(r, hfn_times_self_error(r, sum));
}

/* Ticks come at random: the number of those in a time has the variance of its mean.  A time in which
 * none came is shorter than their mean interval, as far as can be known. */
static uint64_t tick_error_ns(const hotfn_record *r, uint64_t ns)
{
    double interval = hfn_times_tick_error_ns(&r->times.header);
    double error = hfn_times_root((double)ns * interval);

    return (uint64_t)(error > interval ? error : interval);
}

static void fill_errors(const hotfn_record *r, const hfn_slot_sum *sum, hotfn_record_timing *t)
{
    uint64_t total = hfn_times_ns(r, sum->total_ticks), self = hfn_times_ns(r, sum->self_ticks);

    if (r->times.header.flags & HOTFN_TIMING_ERRORS) {
        t->total_error_ns = (uint64_t)hfn_times_root(sum->total_squares);
        t->self_error_ns = (uint64_t)hfn_times_root(sum->self_squares);
    } else if (r->times.header.tick_ticks) {
        t->total_error_ns = tick_error_ns(r, t->total_ns);
        t->self_error_ns = tick_error_ns(r, t->self_ns);
    } else {
        t->total_error_ns = total > t->total_ns ? total - t->total_ns : 0;
        t->self_error_ns = self > t->self_ns ? self - t->self_ns : 0;
    }
}

static void fill_times(const hotfn_record *r, uint32_t slot, hotfn_record_timing *t)
{
    const hfn_slot_sum *sum = &r->sums->slots[slot];

    t->timed_calls = sum->timed_calls;
    t->open_calls = sum->open_calls;
    t->self_alloc = sum->self_alloc;
    t->total_alloc = sum->total_alloc;
    if (sum->timed_calls == 0) {
        return;
    }
    t->total_ns = hfn_times_ns(
        r, hfn_times_less_hooks(r, sum->total_ticks, sum->within_timed, sum->outermost_timed));
    t->self_ns = hfn_times_ns(
        r, hfn_times_less_cost(r, sum->self_ticks, sum->timed_calls, sum->callee_timed));
    t->self_ns = t->self_ns < t->total_ns ? t->self_ns : t->total_ns;
    t->max_ns = hfn_times_one_call_ns(r, sum, sum->max_ticks);
    fill_percentiles(r, sum, t);
    if (t->timing == HOTFN_TIMING_SAMPLE) {
        fill_sampled(r, slot, t);
    } else {
        fill_errors(r, sum, t);
    }
}

hotfn_status hotfn_record_get_timing(const hotfn_record *r, uint32_t function,
                                     hotfn_record_timing *out)
{
    if (!r) {
        return HOTFN_E_OPTION;
    }

    hotfn_record_timing t = HOTFN_RECORD_TIMING_INIT;
    uint32_t slot, word;

    if (function >= r->function_count) {
        return HOTFN_E_NOT_FOUND;
    }
    t.reason = t.reason_text = "";
    slot = hfn_read_le32(hfn_record_get_element(r, HFN_SECTION_SLOTS, function));
    if (r->times_note) {
        t.reason = "not-read";
        t.reason_text = r->times_note;
    } else if (!r->times.present) {
        t.reason = "not-timed";
        t.reason_text = "the run counted only (--mode time)";
    } else if (slot >= r->slot_count) {
        t.reason = "not-counted";
        t.reason_text = "it is not hooked";
    } else {
        word = timing_word(r, function);
        t.timing = HFN_STATE_OF(word) <= HOTFN_TIMING_SAMPLE ? HFN_STATE_OF(word) : 0;
        fill_reason(r, HFN_REASON_OF(word), &t);
        fill_times(r, slot, &t);
    }
    return hfn_copy_out(out, &t, sizeof t) ? HOTFN_OK : HOTFN_E_OPTION;
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
        add_histograms(r, &r->sums->slots[slot], counts);
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
               : (double)hfn_times_bucket_begin(bucket) * 1e9 / (double)rate;
}
