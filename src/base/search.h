/* SPDX-License-Identifier: MIT */
/* Where a number belongs among items that are sorted by an integer in each, key_at bytes into it. */
#ifndef HFN_BASE_SEARCH_H
#define HFN_BASE_SEARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline size_t hfn_count_keys_below(const void *items, size_t count, size_t item_bytes,
                                          size_t key_at, bool narrow, uint64_t key)
{
    size_t low = 0, high = count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const void *there = (const uint8_t *)items + middle * item_bytes + key_at;
        if ((narrow ? *(const uint32_t *)there : *(const uint64_t *)there) < key) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* How many items have a key below the given one: the index of the first that has not. */
static inline size_t hfn_count_below(const void *items, size_t count, size_t item_bytes,
                                     size_t key_at, uint64_t key)
{
    return hfn_count_keys_below(items, count, item_bytes, key_at, false, key);
}

/* The same where each key is a uint32_t. */
static inline size_t hfn_count_below_u32(const void *items, size_t count, size_t item_bytes,
                                         size_t key_at, uint64_t key)
{
    return hfn_count_keys_below(items, count, item_bytes, key_at, true, key);
}

/* How many have that key or one below it: the index of the first behind it. */
static inline size_t hfn_count_up_to(const void *items, size_t count, size_t item_bytes,
                                     size_t key_at, uint64_t key)
{
    return key == UINT64_MAX ? count : hfn_count_below(items, count, item_bytes, key_at, key + 1);
}

#endif
