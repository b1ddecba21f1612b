/* SPDX-License-Identifier: MIT */
/* The ranks of the median and of the 95th percentile, so that merged records, `hotfn report --runs`
 * and hotfn-collector compute the same values.  A rank is an index in values that are sorted in
 * ascending order.  Any thread.  Since 0.1. */
#ifndef HOTFN_RANKS_H
#define HOTFN_RANKS_H

#include <stdint.h>

/* The median of count values (at least 1) is the mean of the values at these two ranks, which are
 * the same rank if count is odd. */
static inline void hotfn_get_median_ranks(uint32_t count, uint32_t *low, uint32_t *high)
{
    *low = (count - 1) / 2;
    *high = count / 2;
}

/* The rank of the 95th percentile of count values (at least 1): the smallest value that at least
 * 95 % of the values do not exceed (the nearest rank). */
static inline uint32_t hotfn_get_p95_rank(uint32_t count)
{
    return (uint32_t)(((uint64_t)count * 95 + 99) / 100) - 1;
}

/* The value at a rank of total values: zeros, followed by the count values in sorted. */
static inline uint64_t hotfn_get_ranked_value(const uint64_t *sorted, uint32_t count,
                                              uint32_t total, uint32_t rank)
{
    uint32_t zeros = total - count;

    return rank < zeros ? 0 : sorted[rank - zeros];
}

#endif
