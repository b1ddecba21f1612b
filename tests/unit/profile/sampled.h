/* SPDX-License-Identifier: MIT */
/* Streams of calls whose times are known, sampled as the engine does it, and put into a record that is open.  Three
 * functions may call each other in any way; which of their calls are timed is the library's choice, time is a number, and a
 * hook costs nothing (sampling_test.c has what they cost). */
#ifndef HFN_TESTS_PROFILE_SAMPLED_H
#define HFN_TESTS_PROFILE_SAMPLED_H

#include "live/sampling.h"

#include "../../property/random.h"
#include "profile/timed.h"

enum { SAMPLED_FUNCTIONS = 3, SAMPLED_DEPTH = 256, SAMPLED_OUTSIDE = SAMPLED_FUNCTIONS };

typedef struct sampled_function {
    uint64_t calls, skip, mean; /* as hfn_time_gap */
    hfn_sample_seen seen;
    hfn_time_cell cell;
    uint64_t histogram[HOTFN_HISTOGRAM_BUCKETS];
    uint64_t truth, all_truth; /* outermost calls, and all of them */
    uint32_t open, timed_open;
    bool is_always_timed;
} sampled_function;

typedef struct sampled_frame {
    uint32_t slot;
    bool is_timed;
    uint64_t stands_for, start, in_timed;
} sampled_frame;

typedef struct sampled_stream {
    random_source random;
    uint64_t drawn, clock;
    sampled_function functions[SAMPLED_FUNCTIONS];
    hfn_time_node nodes[SAMPLED_FUNCTIONS + 1][SAMPLED_FUNCTIONS]; /* by caller */
    sampled_frame stack[SAMPLED_DEPTH];
    uint32_t depth;
} sampled_stream;

static const hfn_sample_rule sampled_rule = { 32 * 16 * 40, 8 * 32, 64 * 32 };

static inline void sampled_enter(sampled_stream *s, uint32_t slot)
{
    sampled_function *f = &s->functions[slot];
    sampled_frame *frame = &s->stack[s->depth];
    uint32_t caller = s->depth ? s->stack[s->depth - 1].slot : SAMPLED_OUTSIDE;

    *frame = (sampled_frame){ .slot = slot, .start = s->clock };
    f->calls++;
    f->open++;
    s->depth++;
    frame->is_timed = f->is_always_timed || f->skip-- == 0;
    if (!frame->is_timed) {
        return;
    }
    frame->stands_for = f->mean ? f->mean : 1;
    f->timed_open++;
    if (!f->is_always_timed) {
        f->mean = hfn_sample_mean(&sampled_rule, f->cell.timed_calls, &f->seen);
        f->skip = hfn_sample_skip(&s->drawn, (uint32_t)f->mean);
    }
    s->nodes[caller][slot].calls += frame->stands_for;
}

static inline sampled_frame *sampled_timed_caller(sampled_stream *s)
{
    for (uint32_t i = s->depth; i-- > 0;) {
        if (s->stack[i].is_timed) {
            return &s->stack[i];
        }
    }
    return NULL;
}

static inline void sampled_exit(sampled_stream *s)
{
    sampled_frame *frame = &s->stack[--s->depth], *around = sampled_timed_caller(s);
    sampled_function *f = &s->functions[frame->slot];
    uint32_t caller = s->depth ? s->stack[s->depth - 1].slot : SAMPLED_OUTSIDE;
    hfn_time_node *n = &s->nodes[caller][frame->slot];
    uint64_t took = s->clock - frame->start, g = frame->stands_for;

    f->truth += --f->open == 0 ? took : 0;
    f->all_truth += took;
    if (!frame->is_timed) {
        return;
    }
    hfn_sample_see(&sampled_rule, &f->seen, took);
    f->cell.timed_calls++;
    f->cell.total_ticks += --f->timed_open == 0 ? took : 0;
    f->cell.self_ticks += took - frame->in_timed;
    f->cell.max_ticks = took > f->cell.max_ticks ? took : f->cell.max_ticks;
    if (around) {
        around->in_timed += took;
    }
    n->timed_calls++;
    n->total_ticks += took * g;
    n->spread += g * (g - 1);
    f->histogram[timed_bucket(took)] += g;
}

static inline void sampled_call(sampled_stream *s, uint32_t slot, uint64_t ticks)
{
    sampled_enter(s, slot);
    s->clock += ticks;
    sampled_exit(s);
}

/* A record in which each function is called from outside, and some from others: "01" says that 0 calls 1. */
static inline hotfn_record *sampled_open(const char *path, const char *const *pairs)
{
    timed_model *m = calloc(1, sizeof *m);
    hotfn_record *r = NULL;
    hfn_part *states;

    for (uint32_t caller = 0; caller < SAMPLED_FUNCTIONS; caller++) {
        timed_enter(m, 0, caller);
        for (uint32_t i = 0; pairs[i]; i++) {
            if (pairs[i][0] - '0' == (int)caller) {
                timed_call(m, 0, (uint32_t)(pairs[i][1] - '0'), 10);
            }
        }
        timed_exit(m, 0);
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

static inline void sampled_put(hotfn_record *r, const sampled_stream *s)
{
    hfn_packed *h = &r->times.histograms;

    hfn_packed_finish(h);
    hfn_packed_init(h, &r->env);
    for (uint32_t i = 0; i < SAMPLED_FUNCTIONS; i++) {
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
        const hfn_time_node *from =
            &s->nodes[n->parent == UINT32_MAX ? SAMPLED_OUTSIDE : r->times.nodes[n->parent].slot]
                     [n->slot];

        n->calls = from->calls;
        n->timed_calls = from->timed_calls;
        n->total_ticks = from->total_ticks;
        n->within_timed = 0;
        n->spread = from->spread;
    }
    CHECK_EQ_I64(hfn_profile_sum_times(r), HOTFN_OK);
}

static inline hotfn_record_timing sampled_told(const hotfn_record *r, uint32_t slot)
{
    static const uint32_t function[SAMPLED_FUNCTIONS] = { 0, 1, 4 }; /* gamma comes last */
    hotfn_record_timing t = HOTFN_RECORD_TIMING_INIT;

    CHECK_EQ_I64(hotfn_record_get_timing(r, function[slot], &t), HOTFN_OK);
    return t;
}

/* Of many streams: how far the mean of what is told is from the truth, and what is told of that. */
typedef struct sampled_verdict {
    double bias, error,
        off; /* means, over the truth: told - true; the claimed error; the distance */
    uint32_t count, within_two, unknown;
} sampled_verdict;

static inline void sampled_judge(sampled_verdict *v, uint64_t told, uint64_t error, uint64_t truth)
{
    double off = ((double)told - (double)truth) / (double)truth;

    v->count++;
    v->bias += off;
    v->off += off < 0 ? -off : off;
    if (error == HOTFN_ERROR_UNKNOWN) {
        v->unknown++;
        return;
    }
    v->error += (double)error / (double)truth;
    v->within_two += (off < 0 ? -off : off) * (double)truth <= 2 * (double)error + 1;
}

static inline void sampled_print(const char *what, const sampled_verdict *v)
{
    printf(
        "# %s: %u streams, bias %+.2f %%, off by %.2f %%, claimed %.2f %%, within two %u, unknown %u\n",
        what, v->count, 100 * v->bias / v->count, 100 * v->off / v->count,
        100 * v->error / v->count, v->within_two, v->unknown);
}

#endif
