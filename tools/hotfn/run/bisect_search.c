/* SPDX-License-Identifier: MIT */
/* Delta debugging (Zeller, Hildebrandt 2002, ddmin): the search that ends at the fewest functions
 * which still change the outcome, alone or together.  One culprit among n costs about 2 log2 n
 * trials. */
#include "bisect.h"

#include <stdlib.h>
#include <string.h>

typedef struct search {
    uint32_t *items;
    uint32_t count;
    uint32_t *rest; /* room for a complement */
    bisect_bad_fn bad;
    void *user;
} search;

static uint32_t part_begin(const search *s, uint32_t parts, uint32_t part)
{
    return (uint32_t)((uint64_t)s->count * part / parts);
}

/* Is one of the parts bad alone?  Then it is all that is left. */
static bool keep_a_part(search *s, uint32_t parts)
{
    for (uint32_t part = 0; part < parts; part++) {
        uint32_t begin = part_begin(s, parts, part), end = part_begin(s, parts, part + 1);
        if (!s->bad(s->user, s->items + begin, end - begin)) {
            continue;
        }
        memmove(s->items, s->items + begin, (end - begin) * sizeof *s->items);
        s->count = end - begin;
        return true;
    }
    return false;
}

/* Is it still bad without one of the parts?  Then that part goes. */
static bool drop_a_part(search *s, uint32_t parts)
{
    for (uint32_t part = 0; part < parts; part++) {
        uint32_t begin = part_begin(s, parts, part), end = part_begin(s, parts, part + 1);
        uint32_t rest = s->count - (end - begin);
        memcpy(s->rest, s->items, begin * sizeof *s->items);
        memcpy(s->rest + begin, s->items + end, (s->count - end) * sizeof *s->items);
        if (!s->bad(s->user, s->rest, rest)) {
            continue;
        }
        memcpy(s->items, s->rest, rest * sizeof *s->items);
        s->count = rest;
        return true;
    }
    return false;
}

uint32_t bisect_search(uint32_t *items, uint32_t item_count, bisect_bad_fn bad, void *user)
{
    search s = { items, item_count, malloc((item_count + 1) * sizeof *items), bad, user };
    uint32_t parts = 2;

    while (s.rest && s.count > 1) {
        parts = parts < s.count ? parts : s.count;
        if (keep_a_part(&s, parts)) {
            parts = 2;
        } else if (parts > 2 && drop_a_part(&s, parts)) {
            parts--; /* the parts keep their size */
        } else if (parts == s.count) {
            break;
        } else {
            parts *= 2;
        }
    }
    free(s.rest);
    return s.count;
}
