/* SPDX-License-Identifier: MIT */
/* HOT PATH: which calls of a function a sample times: all as long as few were; then one in `mean`, at
 * random.  A timed call stands for the mean that led to it.  The mean is chosen so that timing takes the
 * same share of every function's time: what calls take longer, of those more are timed.  A choice rests
 * on what was seen before only, so that sums of (mean x time) stay unbiased (docs/design/timing.md).
 * Nothing here knows a clock. */
#ifndef HFN_COUNTERS_SAMPLING_H
#define HFN_COUNTERS_SAMPLING_H

#include <stdint.h>

/* So many calls of a function in a thread are timed before any goes by. */
#define HFN_ALWAYS_TIMED 1000u

/* What is seen of a call that took so long: a few that waited for a processor make no function a long one. */
static inline uint64_t hfn_sample_seen(uint64_t worth_ticks, uint64_t took)
{
    return took < worth_ticks ? took : worth_ticks;
}

/* For calls that take worth_ticks: 1; for shorter ones as much more, up to `most`.  A power of two, for a
 * division takes longer than its exactness is worth. */
static inline uint32_t hfn_sample_mean(uint64_t worth_ticks, uint32_t most, uint64_t timed_calls,
                                       uint64_t seen_ticks)
{
    int shift = __builtin_clzll(seen_ticks | 1) - __builtin_clzll(worth_ticks * timed_calls | 1);

    if (timed_calls < HFN_ALWAYS_TIMED || shift <= 0)
        return 1;
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
