/* SPDX-License-Identifier: MIT */
/* A stable sort in O(n log n) with memory of the caller.  libc's qsort allocates without the env,
 * or is quadratic without an allocation. */
#ifndef HFN_BASE_SORT_H
#define HFN_BASE_SORT_H

#include "base/memory.h"

/* Does a come before b? */
typedef bool (*hfn_before_fn)(const void *a, const void *b);

/* Sort items with the help of room, which is as large.  Returns items or room, whichever has the
 * result; the contents of the other are unspecified. */
void *hfn_sort_items(void *items, void *room, size_t count, size_t item_bytes,
                     hfn_before_fn before);

/* Sort the first count items of an array that hfn_grow_array allocated; *items may move.  Nothing
 * is allocated if they are already in order.  False without memory; *items is then unchanged. */
bool hfn_sort_array(const hotfn_env *env, void **items, size_t capacity, size_t count,
                    size_t item_bytes, hfn_before_fn before);

#endif
