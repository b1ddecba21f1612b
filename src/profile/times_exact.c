/* SPDX-License-Identifier: MIT */
/* What is known exactly of a sample's calls: those of functions all of whose calls were timed.
 *
 * A function that is called often and is long only when it calls such a one (an insertion that makes a table grow) is badly
 * told by its own timed calls: few or none of the long ones are among them, and one that is stands for hundreds.  But
 * what these calls took is known from the other side.  So the long ones of its timed calls are replaced: they count as
 * long as all others do, and the exact sum of what it called is added (post-stratification: a stratum whose sum is known
 * without error).  What is longer than `least` is that stratum, which is chosen by the callees' calls alone.  It is done only
 * if the function's own long calls can be theirs, within three standard errors, by number and by time, and if its
 * timed calls say that this time was spent in timed callees.  Else its calls together are raised to what is known at least.
 *
 * A caller of that function has the same calls within its own; where it makes nearly all of the calls, they are known to be. */
#include "profile/profile.h"

#define BY_CHANCE 3 /* standard errors                                              */
#define PARTS 2
static const double parts[PARTS] = { 1, 0.95 }; /* of an exact function's time, that is replaced */
#define ALL_OF 0.8     /* of a call's time, as what hooks cost is in it                */
#define NEARLY_ALL 0.9 /* of a function's calls                                        */
#define BUCKET 0.009   /* of a bucket's ticks is the standard error of its middle      */
#define LONGER_MOST 1.25
#define MINOR 0.02    /* of what is known exactly of a function                       */
#define STEPS_MOST 32 /* from caller to caller                                        */

/* Calls of exact functions that took `least` or more. */
typedef struct long_calls {
    double calls, ticks, squares;
    double short_squares; /* of the others */
    uint64_t least;
} long_calls;

/* Within those of a function. */
typedef struct exact_calls {
    double all_ticks;
    long_calls of[PARTS]; /* all of them, and most of their time */
    double most_of_one;
    uint32_t source; /* the exact function that took most */
} exact_calls;

typedef struct search {
    hotfn_record *r;
    exact_calls *tails; /* [slot_count]: what a mean call of an exact function adds   */
    exact_calls *found; /* [slot_count]: what is within the calls of a sampled one    */
    exact_calls *made;  /* [slot_count]: the same, of the step that is being taken    */
    double *calls;      /* [slot_count]: of a function, that can have them within     */
    bool is_second;     /* look: of each function it is known how much all of them are */
    uint64_t *counts;   /* a histogram */
} search;

static bool is_sampled(const search *s, uint32_t slot)
{
    return s->r->sums->slots[slot].spread > 0;
}

/* The timed function whose call it was; a counted-only one may stand between. */
static uint32_t caller_of(const hotfn_record *r, uint32_t node)
{
    const hfn_time_node *nodes = r->times.nodes;
    uint32_t at = nodes[node].parent;

    while (at != UINT32_MAX && nodes[at].parent != UINT32_MAX && !hfn_time_was_called(&nodes[at])) {
        at = nodes[at].parent;
    }
    return at == UINT32_MAX ? HOTFN_NO_SLOT : nodes[at].slot;
}

/* ---- The long calls of exact functions. */

static double middle_of(uint32_t bucket)
{
    return ((double)hfn_times_bucket_begin(bucket) +
            (double)(hfn_times_bucket_begin(bucket + 1) - 1)) /
           2;
}

/* The calls of the highest buckets that hold such a part of the time.  Per call, but ticks: so much of all; least as it was measured. */
static long_calls take_tail(const uint64_t *counts, double part)
{
    double all = 0, calls = 0;
    uint32_t bucket = HOTFN_HISTOGRAM_BUCKETS;
    long_calls out = { 0 };

    for (uint32_t i = 0; i < HOTFN_HISTOGRAM_BUCKETS; i++) {
        all += middle_of(i) * (double)counts[i];
        calls += (double)counts[i];
    }
    for (; bucket > 0 && out.ticks < part * all; bucket--) {
        double ticks = middle_of(bucket - 1), of_bucket = (double)counts[bucket - 1];

        out.calls += of_bucket;
        out.ticks += ticks * of_bucket;
        out.squares += ticks * ticks * of_bucket;
        out.least = of_bucket > 0 ? hfn_times_bucket_begin(bucket - 1) : out.least;
    }
    for (; bucket > 0; bucket--) {
        out.short_squares +=
            middle_of(bucket - 1) * middle_of(bucket - 1) * (double)counts[bucket - 1];
    }
    if (calls > 0) {
        out.calls /= calls;
        out.squares /= calls;
        out.short_squares /= calls;
        out.ticks /= all;
    }
    return out;
}

static void find_tails(search *s)
{
    for (uint32_t i = 0; i < s->r->sums->slot_count; i++) {
        const hfn_slot_sum *sum = &s->r->sums->slots[i];

        if (!hfn_times_is_known(s->r, sum)) {
            continue;
        }
        hfn_times_histogram(s->r, sum, s->counts);
        for (uint32_t k = 0; k < PARTS; k++) {
            s->tails[i].of[k] = take_tail(s->counts, parts[k]);
        }
    }
}

/* ---- What is within a function's calls. */

static void add_long(long_calls *to, const long_calls *more, double calls)
{
    to->calls += more->calls * calls;
    to->ticks += more->ticks * calls;
    to->squares += more->squares * calls;
    to->short_squares += more->short_squares * calls;
    if (to->least == 0 || (more->least > 0 && more->least < to->least)) {
        to->least = more->least;
    }
}

/* Those that are next to nothing of all would only make `least` small. */
static void add_found(const search *s, uint32_t slot, const exact_calls *more, double calls,
                      uint32_t source)
{
    exact_calls *to = &s->made[slot];
    double ticks = more->all_ticks * calls;

    if (!s->is_second) {
        to->all_ticks += ticks;
        return;
    }
    if (ticks < MINOR * to->all_ticks) {
        return;
    }
    for (uint32_t k = 0; k < PARTS; k++) {
        add_long(&to->of[k], &more->of[k], calls);
    }
    if (ticks > to->most_of_one) {
        to->most_of_one = ticks;
        to->source = source;
    }
}

static void add_exact(search *s)
{
    const hotfn_record *r = s->r;

    for (uint32_t i = 0; i < r->times.node_count; i++) {
        const hfn_time_node *n = &r->times.nodes[i];
        exact_calls one = s->tails[n->slot];
        uint32_t caller = caller_of(r, i);

        if (caller >= r->sums->slot_count || !r->sums->nodes[i].is_chosen || n->calls == 0 ||
            !is_sampled(s, caller) || !hfn_times_is_known(r, &r->sums->slots[n->slot])) {
            continue;
        }
        one.all_ticks = (double)hfn_times_node_ticks(r, i) / (double)n->calls;
        for (uint32_t k = 0; k < PARTS; k++) {
            one.of[k].ticks *= one.all_ticks;
        }
        add_found(s, caller, &one, (double)n->calls, n->slot);
    }
}

/* A function's calls from within the exact one have none of that one's calls within, as far as nobody recurses. */
static bool can_have(const search *s, const hfn_edge_sum *edge)
{
    const exact_calls *of = &s->found[edge->callee];

    return of->all_ticks > 0 && edge->caller != of->source && edge->caller != edge->callee;
}

static void add_of_callees(search *s)
{
    const hotfn_record *r = s->r;

    for (uint32_t i = 0; i < r->sums->slot_count; i++) {
        s->calls[i] = 0;
    }
    for (uint32_t i = 0; i < r->sums->edge_count; i++) {
        if (can_have(s, &r->sums->edges[i])) {
            s->calls[r->sums->edges[i].callee] += (double)r->sums->edges[i].calls;
        }
    }
    for (uint32_t i = 0; i < r->sums->edge_count; i++) {
        const hfn_edge_sum *edge = &r->sums->edges[i];
        const exact_calls *of = &s->found[edge->callee];
        double part;

        if (edge->caller >= r->sums->slot_count || !can_have(s, edge) ||
            !is_sampled(s, edge->caller) ||
            r->sums->slots[edge->caller].cycle == r->sums->slots[edge->callee].cycle) {
            continue;
        }
        part = s->calls[edge->callee] > 0 ? (double)edge->calls / s->calls[edge->callee] : 0;
        if (part >= NEARLY_ALL) {
            add_found(s, edge->caller, of, part, of->source);
        }
    }
}

static bool take_step(search *s)
{
    uint32_t slots = s->r->sums->slot_count;
    bool more = false;

    for (uint32_t i = 0; i < slots; i++) {
        s->made[i] = (exact_calls){ 0 };
    }
    for (uint32_t look = 0; look < 2; look++) {
        s->is_second = look > 0;
        add_exact(s);
        add_of_callees(s);
    }
    for (uint32_t i = 0; i < slots; i++) {
        more |= s->made[i].all_ticks > s->found[i].all_ticks;
        s->found[i] = s->made[i];
    }
    return more;
}

/* ---- A function. */

/* Its timed calls, told apart: what they stand for, and ticks as they were measured. */
typedef struct strata {
    double calls, ticks, squares; /* the short ones */
    double long_calls, long_ticks, long_squares;
    double long_timed;   /* ticks of the long ones that were timed, about */
    double sure_squares; /* of those that stand for themselves            */
} strata;

static strata tell_apart(const uint64_t *counts, uint64_t least, double gap)
{
    strata of = { 0 };

    for (uint32_t i = 0; i < HOTFN_HISTOGRAM_BUCKETS; i++) {
        double calls = (double)counts[i], ticks = middle_of(i);
        bool is_sure = hfn_time_stand_for_themselves(counts[i], gap);

        if (hfn_times_bucket_begin(i) < least) {
            of.calls += calls;
            of.ticks += calls * ticks;
            of.squares += calls * ticks * ticks;
        } else {
            of.long_calls += calls;
            of.long_ticks += calls * ticks;
            of.long_squares += calls * ticks * ticks;
            of.long_timed += (is_sure           ? calls
                              : calls > 2 * gap ? (double)(uint64_t)(calls / gap)
                                                : 1) *
                             ticks;
            of.sure_squares += is_sure ? calls * ticks * ticks : 0;
        }
    }
    return of;
}

/* The squares of the exact calls that a timed call of the function may have had or not. */
static double by_chance(const long_calls *exact, const strata *of)
{
    return exact->squares > of->sure_squares ? exact->squares - of->sure_squares : 0;
}

/* By number, one more than within their standard errors, as they are few; and those that were timed took no longer than all. */
static bool can_be_theirs(const long_calls *exact, const strata *of, double gap, double rest)
{
    double calls = exact->calls + gap + BY_CHANCE * hfn_times_root(gap * exact->calls);

    return exact->ticks > 0 && of->calls > 0 && of->long_calls <= calls &&
           of->long_timed * rest * ALL_OF <= exact->ticks;
}

/* Which part of the long ones' time was spent in timed callees. */
static double part_in_callees(const hfn_slot_sum *sum, const strata *of)
{
    double ticks =
        sum->total_ticks > sum->self_ticks ? (double)(sum->total_ticks - sum->self_ticks) : 0;

    return ticks < ALL_OF * of->long_timed ? ticks / of->long_timed : 1;
}

/* A change of all its nodes together.  What is too much is taken from those where calls took more than the short ones
 * do; what is missing went by, and goes to all by their number, but to those from within the exact callee. */
static void change(hotfn_record *r, uint32_t slot, uint32_t source, double mean, double more)
{
    double above = 0, calls = 0;

    for (uint32_t i = r->sums->slots[slot].first_node; i != UINT32_MAX;
         i = r->sums->nodes[i].next_of_slot) {
        double of_calls = (double)r->times.nodes[i].calls;
        double longer = hfn_times_node_raw(r, i) - mean * of_calls;

        above += r->sums->nodes[i].is_chosen && longer > 0 ? longer : 0;
        calls += r->sums->nodes[i].is_chosen && caller_of(r, i) != source ? of_calls : 0;
    }
    for (uint32_t i = r->sums->slots[slot].first_node; i != UINT32_MAX;
         i = r->sums->nodes[i].next_of_slot) {
        double of_calls = (double)r->times.nodes[i].calls, ticks = 0;
        double longer = hfn_times_node_raw(r, i) - mean * of_calls;

        if (!r->sums->nodes[i].is_chosen) {
            continue;
        }
        if (more < 0 && longer > 0) {
            ticks = longer * (-more < LONGER_MOST * above ? more / above : -1);
        }
        if (more > 0 && calls > 0 && caller_of(r, i) != source) {
            ticks = more * of_calls / calls;
        }
        r->sums->nodes[i].more_ticks += ticks;
        if (r->sums->nodes[i].edge != UINT32_MAX) {
            r->sums->edges[r->sums->nodes[i].edge].more_ticks += ticks;
        }
    }
}

static double all_ticks(const hotfn_record *r, const hfn_slot_sum *sum, double *measured)
{
    double ticks = 0;

    *measured = 0;
    for (uint32_t i = sum->first_node; i != UINT32_MAX; i = r->sums->nodes[i].next_of_slot) {
        if (r->sums->nodes[i].is_chosen) {
            ticks += hfn_times_node_raw(r, i);
            *measured += (double)r->times.nodes[i].total_ticks;
        }
    }
    return ticks;
}

/* The long ones are replaced, as far as they were long in timed callees. */
static void replace_long(search *s, uint32_t slot, uint32_t part, const strata *of, double rest)
{
    hfn_slot_sum *sum = &s->r->sums->slots[slot];
    const exact_calls *exact = &s->found[slot];
    double theirs = part_in_callees(sum, of), mean = of->ticks / of->calls;
    double fit = (double)sum->calls / (double)sum->stood_for;
    double unseen = exact->of[part].short_squares / (double)sum->calls;
    double variance = (of->squares + (1 - theirs) * of->long_squares) /
                          (of->calls + (1 - theirs) * of->long_calls) -
                      mean * mean;

    variance = variance > unseen ? variance : unseen;
    sum->variance = variance + theirs * theirs * of->long_ticks * of->long_ticks * BUCKET * BUCKET /
                                   (double)sum->spread;
    change(s->r, slot, exact->source, mean * rest,
           exact->of[part].ticks / fit - theirs * (of->long_ticks - of->long_calls * mean) * rest);
}

static void use(search *s, uint32_t slot)
{
    hfn_slot_sum *sum = &s->r->sums->slots[slot];
    const exact_calls *exact = &s->found[slot];
    double measured, ticks = all_ticks(s->r, sum, &measured), unseen, exact_ticks;
    strata of = { 0 };

    if (exact->all_ticks <= 0 || sum->stood_for == 0 || sum->calls == 0 || measured <= 0) {
        return;
    }
    hfn_times_histogram(s->r, sum, s->counts);
    for (uint32_t k = 0; k < PARTS; k++) {
        of = tell_apart(s->counts, exact->of[k].least, hfn_time_mean_gap(sum));
        if (can_be_theirs(&exact->of[k], &of, hfn_time_mean_gap(sum), ticks / measured)) {
            replace_long(s, slot, k, &of, ticks / measured);
            return;
        }
    }
    unseen = by_chance(&exact->of[PARTS - 1], &of) / (double)sum->calls;
    sum->variance = unseen > sum->variance ? unseen : sum->variance;
    exact_ticks = exact->all_ticks * (double)sum->stood_for / (double)sum->calls;
    if (ticks < exact_ticks) { /* no less than that */
        change(s->r, slot, exact->source, 0, exact_ticks - ticks);
    }
}

bool hfn_times_use_exact(hotfn_record *r)
{
    uint32_t slots = r->sums->slot_count;
    size_t bytes = slots * (3 * sizeof(exact_calls) + sizeof(double));
    size_t counts_bytes = HOTFN_HISTOGRAM_BUCKETS * sizeof(uint64_t);
    search s = { .r = r };
    bool held;

    s.tails = hfn_allocate_zeroed(&r->env, bytes);
    s.counts = hfn_allocate_zeroed(&r->env, counts_bytes);
    if (s.tails && s.counts) {
        s.found = s.tails + slots;
        s.made = s.found + slots;
        s.calls = (double *)(void *)(s.made + slots);
        find_tails(&s);
        for (uint32_t i = 0; i < STEPS_MOST && take_step(&s); i++) {
            ;
        }
        for (uint32_t i = 0; i < slots; i++) {
            if (is_sampled(&s, i)) {
                use(&s, i);
            }
        }
    }
    held = s.tails && s.counts;
    hfn_free_memory(&r->env, s.tails, bytes);
    hfn_free_memory(&r->env, s.counts, counts_bytes);
    return held;
}
