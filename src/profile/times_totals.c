/* SPDX-License-Identifier: MIT */
/* What a sampled function took in all, by itself, and how far that may be off.
 *
 * Recursion: whether an outer call was open is not known of a call whose outer ones went by untimed.  So what is known of
 * a function that recurses is between two sums.  Its calls from functions that it does not lead to are outermost for sure,
 * and what is in another of its calls is in its calls of others of its circle of functions.  No total is more than its calls
 * from all others, nor than what all calls into its circle took.  The larger sum is told.  Its error is all that lies between,
 * and chance; or not known, where the other is less than half of it.  Where each call was timed, the cell knows. */
#include "profile/profile.h"

typedef struct calls_sum {
    double calls, ticks, spread;
} calls_sum;

typedef struct recursion {
    bool recurses;
    double least, most;        /* ticks that its outermost calls took                          */
    calls_sum outside, others; /* its calls from outside of the circle, and from all but itself */
    double back; /* its calls of others in the circle, in which it may be called again */
    bool is_cut; /* most: by what all calls into the circle took                 */
} recursion;

static uint64_t add(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

uint64_t hfn_times_sampled_self(const hotfn_record *r, const hfn_slot_sum *sum)
{
    uint64_t total = 0, callees = 0;

    for (uint32_t i = sum->first_node; i != UINT32_MAX; i = r->sums->nodes[i].next_of_slot) {
        if (!r->sums->nodes[i].is_chosen) {
            continue;
        }
        total = add(total, hfn_times_node_ticks(r, i));
        callees = add(callees, hfn_times_callee_ticks(r, i));
    }
    return total > callees ? total - callees : 0;
}

/* Newton's: the library needs nothing of libm. */
double hfn_times_root(double x)
{
    double root = x > 1 ? x : 1;

    for (int i = 0; x > 0 && i < 600 && root * root > x * (1 + 1e-12); i++) {
        root = (root + x / root) / 2;
    }
    return x > 0 ? root : 0;
}

/* A budget takes hooks away for a while: then not all calls are known.  A merge is of what its runs told. */
bool hfn_times_is_known(const hotfn_record *r, const hfn_slot_sum *sum)
{
    return (r->times.header.flags & HOTFN_TIMING_ERRORS) ||
           (sum->timed_calls > 0 && sum->timed_calls == sum->calls && sum->spread == 0 &&
            r->parts[HFN_SECTION_BUDGET].byte_count == 0);
}

/* ---- Standard errors. */

static void add_calls(const hotfn_record *r, calls_sum *to, uint32_t node)
{
    const hfn_time_node *n = &r->times.nodes[node];

    if (!r->sums->nodes[node].is_chosen) {
        return;
    }
    to->calls += (double)n->calls;
    to->ticks += (double)hfn_times_node_ticks(r, node);
    to->spread += (double)n->spread;
}

/* The square, of some of a slot's calls.  All of them are fitted to how many calls there were, so it is the spread of their
 * times alone; of a part it is not known how many calls that were, either.  Those that take longer than others differ as
 * much more from each other. */
static double squared_error(const hfn_slot_sum *sum, const calls_sum *some)
{
    double part = sum->stood_for ? some->calls / (double)sum->stood_for : 1;
    double fit = sum->stood_for ? (double)sum->calls / (double)sum->stood_for : 1;
    double others = (double)sum->spread - some->spread, mean = 0, longer = 1, rest;

    if (some->calls > 0 && sum->calls > 0 && sum->all_ticks > 0) {
        mean = some->ticks / (some->calls * fit);
        longer = mean * (double)sum->calls / sum->all_ticks;
    }
    longer = longer > 1 ? longer : 1;
    rest = (1 - part) * mean;
    return fit * fit *
           (some->spread * (sum->variance * longer * longer * sum->cut * sum->cut + rest * rest) +
            (others > 0 ? others : 0) * part * part * mean * mean);
}

/* The square of a node's standard error (ticks), its slot's calls being fitted to their number. */
static double fitted_square(const hotfn_record *r, uint32_t node)
{
    const hfn_time_node *n = &r->times.nodes[node];
    const hfn_slot_sum *sum = &r->sums->slots[n->slot];
    double fit = sum->stood_for ? (double)sum->calls / (double)sum->stood_for : 1;

    fit *= hfn_times_node_cut(r, node);
    return r->sums->nodes[node].is_chosen ? fit * fit * (double)n->spread * sum->variance : 0;
}

static double fitted_squares(const hotfn_record *r, const hfn_slot_sum *sum)
{
    double squares = 0;

    for (uint32_t i = sum->first_node; i != UINT32_MAX; i = r->sums->nodes[i].next_of_slot) {
        squares += fitted_square(r, i);
    }
    return squares;
}

double hfn_times_sample_error(const hotfn_record *r, const hfn_slot_sum *sum)
{
    return hfn_times_root(sum->total_squares + fitted_squares(r, sum));
}

/* ---- Recursion. */

static const hfn_slot_sum *caller_of(const hotfn_record *r, uint32_t node)
{
    uint32_t parent = r->times.nodes[node].parent;

    return parent == UINT32_MAX ? NULL : &r->sums->slots[r->times.nodes[parent].slot];
}

/* Each of its calls was timed, so whether an outer one was open is known of each. */
static uint64_t exact_ticks(const hotfn_record *r, const hfn_slot_sum *sum)
{
    uint64_t outermost = 0;

    for (uint32_t i = sum->first_node; i != UINT32_MAX; i = r->sums->nodes[i].next_of_slot) {
        if (r->sums->nodes[i].is_chosen && caller_of(r, i) != sum) {
            outermost = add(outermost, r->times.nodes[i].calls);
        }
    }
    outermost = outermost < sum->timed_calls ? outermost : sum->timed_calls;
    return hfn_times_less_hooks(r, sum->total_ticks, sum->within_timed, outermost);
}

static uint64_t known_ticks(const hotfn_record *r, const hfn_slot_sum *sum)
{
    return hfn_times_is_known(r, sum) ? exact_ticks(r, sum)
                                      : hfn_times_one_call(r, sum, sum->max_ticks);
}

/* What calls from outside of a circle took: no total of its functions is more.  But it takes no less than a function of
 * it whose calls were all timed, nor than the longest call that was. */
void hfn_times_sum_cycles(hotfn_record *r)
{
    hfn_time_sums *s = r->sums;

    for (uint32_t i = 0; i < s->slot_count; i++) {
        s->slots[i].circle_ticks = s->slots[i].circle_squares = s->slots[i].all_ticks = 0;
    }
    for (uint32_t i = 0; i < s->node_count; i++) {
        if (s->nodes[i].is_chosen) {
            s->slots[r->times.nodes[i].slot].all_ticks += (double)hfn_times_node_ticks(r, i);
        }
    }
    for (uint32_t i = 0; i < s->node_count; i++) {
        const hfn_slot_sum *slot = &s->slots[r->times.nodes[i].slot], *caller = caller_of(r, i);
        calls_sum calls = { 0 };

        if (!s->nodes[i].is_chosen || (caller && caller->cycle == slot->cycle)) {
            continue;
        }
        add_calls(r, &calls, i);
        s->slots[slot->cycle].circle_squares += squared_error(slot, &calls);
        s->slots[slot->cycle].circle_ticks += calls.ticks;
    }
    for (uint32_t i = 0; i < s->slot_count; i++) {
        hfn_slot_sum *circle = &s->slots[s->slots[i].cycle];
        double known = s->slots[i].timed_calls ? (double)known_ticks(r, &s->slots[i]) : 0;

        circle->circle_ticks = known > circle->circle_ticks ? known : circle->circle_ticks;
    }
}

static void find_bounds(const hotfn_record *r, const hfn_slot_sum *sum, recursion *out)
{
    const hfn_slot_sum *circle = &r->sums->slots[sum->cycle];
    double longest = (double)hfn_times_one_call(r, sum, sum->max_ticks);
    double alone = out->others.ticks - out->back;

    out->least = longest > out->outside.ticks ? longest : out->outside.ticks;
    out->least = alone > out->least ? alone : out->least;
    out->is_cut = circle->circle_ticks < out->others.ticks;
    out->most = out->is_cut ? circle->circle_ticks : out->others.ticks;
    out->most = out->least > out->most ? out->least : out->most;
}

static double ticks_in_circle(const hotfn_record *r, const hfn_slot_sum *sum, uint32_t node)
{
    double ticks = 0;

    for (uint32_t i = hfn_times_next_callee(r, node, UINT32_MAX); i != UINT32_MAX;
         i = hfn_times_next_callee(r, node, i)) {
        const hfn_slot_sum *callee = &r->sums->slots[r->times.nodes[i].slot];

        if (callee != sum && callee->cycle == sum->cycle) {
            ticks += (double)hfn_times_node_ticks(r, i);
        }
    }
    return ticks;
}

static void look_at(const hotfn_record *r, const hfn_slot_sum *sum, recursion *out)
{
    *out = (recursion){ .recurses = false };
    for (uint32_t i = sum->first_node; i != UINT32_MAX; i = r->sums->nodes[i].next_of_slot) {
        const hfn_slot_sum *caller = caller_of(r, i);

        out->recurses |= caller && caller->cycle == sum->cycle;
        if (caller != sum) {
            add_calls(r, &out->others, i);
        }
        if (!caller || caller->cycle != sum->cycle) {
            add_calls(r, &out->outside, i);
        }
        if (r->sums->nodes[i].is_chosen) {
            out->back += ticks_in_circle(r, sum, i);
        }
    }
    if (!out->recurses) {
        out->least = out->most = out->others.ticks;
    } else if (hfn_times_is_known(r, sum)) {
        out->least = out->most = (double)exact_ticks(r, sum);
    } else {
        find_bounds(r, sum, out);
    }
}

uint64_t hfn_times_sampled_ticks(const hotfn_record *r, const hfn_slot_sum *sum)
{
    recursion of;

    look_at(r, sum, &of);
    return of.most < 1.8e19 ? (uint64_t)of.most : UINT64_MAX;
}

double hfn_times_total_error(const hotfn_record *r, const hfn_slot_sum *sum)
{
    double between, squares;
    recursion of;

    look_at(r, sum, &of);
    if (!of.recurses || hfn_times_is_known(r, sum)) {
        return hfn_times_sample_error(r, sum);
    }
    between = of.most - of.least;
    squares =
        of.is_cut ? r->sums->slots[sum->cycle].circle_squares : squared_error(sum, &of.others);
    between += hfn_times_root(squares);
    return of.most - of.least > of.most / 2 ? HFN_TICKS_UNKNOWN : between;
}

/* ---- Own time. */

static double squared_callees_error(const hotfn_record *r, const hfn_slot_sum *sum)
{
    double squares = 0;

    for (uint32_t i = sum->first_node; i != UINT32_MAX; i = r->sums->nodes[i].next_of_slot) {
        for (uint32_t k = hfn_times_next_callee(r, i, UINT32_MAX); k != UINT32_MAX;
             k = hfn_times_next_callee(r, i, k)) {
            squares += fitted_square(r, k);
        }
    }
    return squares;
}

/* No own time is less than none, nor more than the total. */
double hfn_times_self_error(const hotfn_record *r, const hfn_slot_sum *sum)
{
    double total = (double)hfn_times_sampled_ticks(r, sum);
    double self = (double)hfn_times_sampled_self(r, sum), most;
    double total_error = hfn_times_total_error(r, sum);
    double error =
        hfn_times_root(sum->self_squares + fitted_squares(r, sum) + squared_callees_error(r, sum));

    most = 2 * self > total ? self : total - self;
    most += total_error < HFN_TICKS_UNKNOWN ? total_error : 0;
    return error < most || r->times.node_count == 0 ? error : most;
}
