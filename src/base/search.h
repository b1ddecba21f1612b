/* SPDX-License-Identifier: MIT */
/* Where a number belongs among items that are sorted by a uint64_t in each, key_at bytes into it. */
#ifndef HFN_BASE_SEARCH_H
#define HFN_BASE_SEARCH_H

#include <stddef.h>
#include <stdint.h>

/* How many items have a key below the given one: the index of the first that has not. */
static inline size_t hfn_count_below(const void *items, size_t count, size_t item_bytes,
                                     size_t key_at, uint64_t key)
{
    size_t low = 0, high = count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const uint64_t *there =
            (const void *)((const uint8_t *)items + middle * item_bytes + key_at);
        if (*there < key)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* How many have that key or one below it: the index of the first behind it. */
static inline size_t hfn_count_up_to(const void *items, size_t count, size_t item_bytes,
                                     size_t key_at, uint64_t key)
{
    return key == UINT64_MAX ? count : hfn_count_below(items, count, item_bytes, key_at, key + 1);
}

#endif
