/* SPDX-License-Identifier: MIT */
/* Binary search in items that are sorted by an integer key, which is key_at bytes into each
 * item. */
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

/* The number of items with a lower key, which is the index of the first other item. */
static inline size_t hfn_count_below(const void *items, size_t count, size_t item_bytes,
                                     size_t key_at, uint64_t key)
{
    return hfn_count_keys_below(items, count, item_bytes, key_at, false, key);
}

/* The same for keys of type uint32_t. */
static inline size_t hfn_count_below_u32(const void *items, size_t count, size_t item_bytes,
                                         size_t key_at, uint64_t key)
{
    return hfn_count_keys_below(items, count, item_bytes, key_at, true, key);
}

/* The number of items with this or a lower key, which is the index of the first higher one. */
static inline size_t hfn_count_up_to(const void *items, size_t count, size_t item_bytes,
                                     size_t key_at, uint64_t key)
{
    return key == UINT64_MAX ? count : hfn_count_below(items, count, item_bytes, key_at, key + 1);
}

#endif
