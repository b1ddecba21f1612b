/* SPDX-License-Identifier: MIT */
/* HOT PATH: which calls of a function a sample times: all as long as few were; then one in `mean`, at
 * random.  A timed call stands for the mean that led to it.  The mean is chosen so that timing takes the
 * same share of every function's time: what calls take longer, of those more are timed; but of what is hardly
 * known yet, never too few.  A choice rests
 * on what was seen before only, so that sums of (mean x time) stay unbiased (docs/lab/timing-sample.md).
 * Nothing here knows a clock. */
#ifndef HFN_COUNTERS_SAMPLING_H
#define HFN_COUNTERS_SAMPLING_H

#include <stdbool.h>
#include <stdint.h>

/* So many calls of a function in a thread are timed before any goes by. */
#define HFN_ALWAYS_TIMED 1000u

/* Once the square of what is seen is so many powers of two above the sum of the squares, the mean is known to some 3 %. */
#define HFN_SAMPLE_KNOWN 10

typedef struct hfn_sample_rule {
    uint64_t worth_ticks; /* a call that takes so long is always timed          */
    uint32_t most,
        most_known; /* of a function one call in so many, at least: as long as little is known of it, and then */
} hfn_sample_rule;

/* What was seen of a function's timed calls. */
typedef struct hfn_sample_seen {
    uint64_t
        ticks; /* of none more than is worth timing always: a few that waited for a processor make no
                       * function a long one */
    uint64_t squares; /* of all their ticks; full: they are too many */
} hfn_sample_seen;

static inline void hfn_sample_see(const hfn_sample_rule *rule, hfn_sample_seen *seen, uint64_t took)
{
    uint64_t factor = took < UINT32_MAX ? took : UINT32_MAX, sum = seen->squares + factor * factor;

    seen->ticks += took < rule->worth_ticks ? took : rule->worth_ticks;
    seen->squares = sum < seen->squares ? UINT64_MAX : sum;
}

/* The logarithm, rounded down. */
static inline int hfn_sample_log2(uint64_t x)
{
    return 63 - __builtin_clzll(x | 1);
}

/* The logarithm of its square, or one less. */
static inline int hfn_sample_log2_of_square(uint64_t x)
{
    int log2 = hfn_sample_log2(x);

    return 2 * log2 + (int)(x >> (log2 > 0 ? log2 - 1 : 0) & 1);
}

/* For calls that take worth_ticks: 1; for shorter ones as much more.  A power of two, for a
 * division takes longer than its exactness is worth. */
static inline uint32_t hfn_sample_mean(const hfn_sample_rule *rule, uint64_t timed_calls,
                                       const hfn_sample_seen *seen)
{
    int shift = hfn_sample_log2(rule->worth_ticks * timed_calls) - hfn_sample_log2(seen->ticks);
    bool is_known =
        hfn_sample_log2_of_square(seen->ticks) - hfn_sample_log2(seen->squares) >= HFN_SAMPLE_KNOWN;
    uint32_t most = is_known ? rule->most_known : rule->most;

    if (timed_calls < HFN_ALWAYS_TIMED || shift <= 0) {
        return 1;
    }
    return shift < 32 && most >> shift != 0 ? UINT32_C(1) << shift : most;
}

/* As long as a budget has not yet said how many may be timed: half as many of the next calls each time that
 * so many were, so that a function called n times costs SLOWER * log2(n / SLOWER) timed calls at most. */
static inline uint32_t hfn_sample_begin(uint64_t timed_calls)
{
    enum { SLOWER = 8, MOST = 20 };
    uint64_t steps = timed_calls / SLOWER;

    return UINT32_C(1) << (steps < MOST ? steps : MOST);
}

/* How many calls go by before the next one: mean - 1 in the mean. */
static inline uint32_t hfn_sample_skip(uint64_t *random, uint32_t mean)
{
    *random = *random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((*random >> 32) * (2 * (uint64_t)mean - 1) >> 32);
}

#endif
