/* SPDX-License-Identifier: MIT */
/* A stable sort whose cost does not depend on the input and whose memory the caller gives (libc's
 * qsort allocates behind the env's back, and is quadratic where it does not). */
#ifndef HFN_BASE_SORT_H
#define HFN_BASE_SORT_H

#include <stdbool.h>
#include <stddef.h>

/* Does a come before b? */
typedef bool (*hfn_before_fn)(const void *a, const void *b);

/* Sorts items; room is as large as items.  Returns items or room, whichever holds the result (the
 * other holds rubbish). */
void *hfn_sort(void *items, void *room, size_t count, size_t item_bytes, hfn_before_fn before);

#endif
