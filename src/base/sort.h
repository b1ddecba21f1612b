/* SPDX-License-Identifier: MIT */
/* A stable sort in O(n log n) that allocates only through the caller's env.  The C library's qsort
 * may call malloc, or be quadratic. */
#ifndef HFN_BASE_SORT_H
#define HFN_BASE_SORT_H

#include "base/memory.h"

/* Does a come before b? */
typedef bool (*hfn_before_fn)(const void *a, const void *b);

/* Sort items with a scratch array of the same size.  Returns the array that holds the result, items
 * or scratch; the contents of the other array are unspecified. */
void *hfn_sort_items(void *items, void *scratch, size_t count, size_t item_bytes,
                     hfn_before_fn before);

/* Sort the first count items of an array that hfn_grow_array allocated; *items may move.  Nothing
 * is allocated if they are already in order.  Returns false, with *items unchanged, if there is no
 * memory. */
bool hfn_sort_array(const hotfn_env *env, void **items, size_t capacity, size_t count,
                    size_t item_bytes, hfn_before_fn before);

#endif
