/* SPDX-License-Identifier: MIT */
/* The order of a record's functions. */
#include "base/status.h"
#include "profile/profile.h"

/* ---- Order: a merge sort, which needs no more than one array beside. */

typedef struct ranked {
    uint64_t calls;
    const char *name;
    uint32_t index;
} ranked;

/* Uncounted ones last. */
static bool comes_before(const ranked *a, const ranked *b)
{
    int names;

    if (a->calls != b->calls) {
        return a->calls > b->calls;
    }
    names = strcmp(a->name, b->name);
    return names != 0 ? names < 0 : a->index < b->index;
}

static void merge(ranked *out, const ranked *in, size_t begin, size_t middle, size_t end)
{
    size_t left = begin, right = middle;

    for (size_t i = begin; i < end; i++) {
        if (left < middle && (right >= end || comes_before(&in[left], &in[right]))) {
            out[i] = in[left++];
        } else {
            out[i] = in[right++];
        }
    }
}

static ranked *sort(ranked *items, ranked *beside, size_t count)
{
    for (size_t width = 1; width < count; width *= 2) {
        ranked *swap = items;

        for (size_t at = 0; at < count; at += 2 * width) {
            size_t middle = at + width < count ? at + width : count;

            merge(beside, items, at, middle, at + 2 * width < count ? at + 2 * width : count);
        }
        items = beside;
        beside = swap;
    }
    return items;
}

hotfn_status hotfn_record_sort(const hotfn_record *r, uint32_t *order)
{
    if (!r || (!order && r->function_count > 0)) {
        return HOTFN_E_OPTION;
    }

    size_t count = r->function_count;
    ranked *items = hfn_alloc(&r->env, 2 * count * sizeof *items), *sorted;

    if (!items) {
        return HOTFN_E_NO_MEMORY;
    }
    for (uint32_t i = 0; i < count; i++) {
        hotfn_record_function f = HOTFN_RECORD_FUNCTION_INIT;

        hotfn_record_get_function(r, i, &f);
        items[i] = (ranked){ f.counted ? f.calls + (f.calls < UINT64_MAX) : 0, f.name, i };
    }
    sorted = sort(items, items + count, count);
    for (size_t i = 0; i < count; i++) {
        order[i] = sorted[i].index;
    }
    hfn_free(&r->env, items, 2 * count * sizeof *items);
    return HOTFN_OK;
}
