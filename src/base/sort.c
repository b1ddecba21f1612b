/* SPDX-License-Identifier: MIT */
/* Bottom-up merge sort.  Two runs that are already in order are copied without merging, so that a
 * nearly sorted table, as linkers write, costs little more than a copy. */
#include "base/sort.h"

#include <stdint.h>
#include <string.h>

typedef struct sorter {
    size_t bytes; /* of an item */
    hfn_before_fn before;
} sorter;

/* Merge [0, middle) and [middle, end) of from, each sorted, into out. */
static void merge_runs(const sorter *s, uint8_t *out, const uint8_t *from, size_t middle,
                       size_t end)
{
    const uint8_t *a = from, *a_end = from + middle * s->bytes;
    const uint8_t *b = a_end, *b_end = from + end * s->bytes;

    if (middle < end && s->before(b, a_end - s->bytes)) {
        while (a < a_end && b < b_end) {
            const uint8_t **next = s->before(b, a) ? &b : &a;
            memcpy(out, *next, s->bytes);
            *next += s->bytes;
            out += s->bytes;
        }
    }
    memcpy(out, a, (size_t)(a_end - a));
    memcpy(out + (a_end - a), b, (size_t)(b_end - b));
}

void *hfn_sort_items(void *items, void *scratch, size_t count, size_t item_bytes,
                     hfn_before_fn before)
{
    sorter s = { item_bytes, before };
    uint8_t *from = items, *to = scratch;

    for (size_t run = 1; run < count; run *= 2) {
        uint8_t *swap = from;
        for (size_t at = 0; at < count; at += 2 * run) {
            size_t middle = count - at < run ? count - at : run;
            size_t end = count - at < 2 * run ? count - at : 2 * run;
            merge_runs(&s, to + at * item_bytes, from + at * item_bytes, middle, end);
        }
        from = to;
        to = swap;
    }
    return from;
}

bool hfn_sort_array(const hotfn_env *env, void **items, size_t capacity, size_t count,
                    size_t item_bytes, hfn_before_fn before)
{
    const uint8_t *at = *items;
    size_t ordered = 1;
    void *scratch, *sorted;

    while (ordered < count && !before(at + ordered * item_bytes, at + (ordered - 1) * item_bytes)) {
        ordered++;
    }
    if (ordered >= count) {
        return true;
    }
    /* not zeroed: every byte is written before it is read */
    scratch = hfn_resize_memory(env, NULL, 0, capacity * item_bytes);
    if (!scratch) {
        return false;
    }
    sorted = hfn_sort_items(*items, scratch, count, item_bytes, before);
    hfn_free_memory(env, sorted == scratch ? *items : scratch, capacity * item_bytes);
    *items = sorted;
    return true;
}
