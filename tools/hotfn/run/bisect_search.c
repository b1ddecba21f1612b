/* SPDX-License-Identifier: MIT */
/* Delta debugging (Zeller, Hildebrandt 2002, ddmin): reduces a set of functions to a smallest
 * subset whose hooks still change the outcome.  Finding one culprit among n functions takes about
 * 2 log2 n trials. */
#include "bisect.h"

#include <stdlib.h>
#include <string.h>

typedef struct search {
    uint32_t *items;
    uint32_t count;
    uint32_t *complement; /* scratch: all items but one part */
    bisect_test_fn test;
    void *user;
} search;

static uint32_t part_begin(const search *s, uint32_t parts, uint32_t part)
{
    return (uint32_t)((uint64_t)s->count * part / parts);
}

/* If one part alone passes the test, reduce the items to it and return true. */
static bool reduce_to_part(search *s, uint32_t parts)
{
    for (uint32_t part = 0; part < parts; part++) {
        uint32_t begin = part_begin(s, parts, part), end = part_begin(s, parts, part + 1);
        if (!s->test(s->user, s->items + begin, end - begin)) {
            continue;
        }
        memmove(s->items, s->items + begin, (end - begin) * sizeof *s->items);
        s->count = end - begin;
        return true;
    }
    return false;
}

/* If the items pass the test without one of the parts, remove this part and return true. */
static bool remove_part(search *s, uint32_t parts)
{
    for (uint32_t part = 0; part < parts; part++) {
        uint32_t begin = part_begin(s, parts, part), end = part_begin(s, parts, part + 1);
        uint32_t complement_count = s->count - (end - begin);
        memcpy(s->complement, s->items, begin * sizeof *s->items);
        memcpy(s->complement + begin, s->items + end, (s->count - end) * sizeof *s->items);
        if (!s->test(s->user, s->complement, complement_count)) {
            continue;
        }
        memcpy(s->items, s->complement, complement_count * sizeof *s->items);
        s->count = complement_count;
        return true;
    }
    return false;
}

uint32_t bisect_search(uint32_t *items, uint32_t item_count, bisect_test_fn test, void *user)
{
    search s = { items, item_count, malloc((item_count + 1) * sizeof *items), test, user };
    uint32_t parts = 2;

    while (s.complement && s.count > 1) {
        parts = parts < s.count ? parts : s.count;
        if (reduce_to_part(&s, parts)) {
            parts = 2;
        } else if (parts > 2 && remove_part(&s, parts)) {
            parts--; /* the parts keep their size */
        } else if (parts == s.count) {
            break;
        } else {
            parts *= 2;
        }
    }
    free(s.complement);
    return s.count;
}
