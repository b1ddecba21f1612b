/* SPDX-License-Identifier: MIT */
/* A stable sort whose cost does not depend on the input and whose memory the caller gives (libc's
 * qsort allocates behind the env's back, and is quadratic where it does not). */
#ifndef HFN_BASE_SORT_H
#define HFN_BASE_SORT_H

#include "base/memory.h"

/* Does a come before b? */
typedef bool (*hfn_before_fn)(const void *a, const void *b);

/* Sorts items; room is as large as items.  Returns items or room, whichever holds the result (the
 * other holds rubbish). */
void *hfn_sort_items(void *items, void *room, size_t count, size_t item_bytes,
                     hfn_before_fn before);

/* Sorts the first count items of an array of env's memory (hfn_grow_array's); *items may move.  Nothing is
 * asked of env where they are in order already.  False, and *items as it was, if there is no memory. */
bool hfn_sort_array(const hotfn_env *env, void **items, size_t capacity, size_t count,
                    size_t item_bytes, hfn_before_fn before);

#endif
