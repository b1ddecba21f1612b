/* SPDX-License-Identifier: MIT */
/* The order of a record's functions: by a key, then by calls, then by name. */
#include "base/sort.h"
#include "base/status.h"
#include "profile/profile.h"

typedef struct ranked_function {
    uint64_t key;   /* the largest comes first                             */
    uint64_t calls; /* the number of calls plus 1; 0: not counted          */
    const char *name;
    uint32_t index;
    bool is_called; /* functions that were not called come last, by any key */
} ranked_function;

static bool comes_before(const void *left, const void *right)
{
    const ranked_function *a = left, *b = right;
    int names;

    if (a->is_called != b->is_called) {
        return a->is_called;
    }
    if (a->key != b->key) {
        return a->key > b->key;
    }
    if (a->calls != b->calls) {
        return a->calls > b->calls;
    }
    names = strcmp(a->name, b->name);
    return names != 0 ? names < 0 : a->index < b->index;
}

static bool comes_before_by_name(const void *left, const void *right)
{
    const ranked_function *a = left, *b = right;
    int names = strcmp(a->name, b->name);

    return names != 0 ? names < 0 : comes_before(left, right);
}

/* True if the run recorded the key. */
static bool has_key(const hotfn_record *r, uint32_t by)
{
    uint32_t flags = r->times.present ? r->times.header.flags : 0;

    switch (by) {
    case HOTFN_BY_SELF: return flags != 0 && !(flags & HOTFN_TIMING_SAMPLED);
    case HOTFN_BY_TOTAL:
    case HOTFN_BY_MAX: return flags != 0;
    case HOTFN_BY_ALLOC: return (flags & HOTFN_TIMING_ALLOC) != 0;
    default: return true;
    }
}

static uint64_t get_key(const hotfn_record *r, uint32_t function, uint32_t by)
{
    hotfn_record_timing t = HOTFN_RECORD_TIMING_INIT;

    if (by == HOTFN_BY_CALLS || by == HOTFN_BY_NAME) {
        return 0; /* comes_before compares calls and names anyway */
    }
    hotfn_record_get_timing(r, function, &t);
    switch (by) {
    case HOTFN_BY_TOTAL: return t.total_ns - t.total_waited_ns;
    case HOTFN_BY_MAX: return t.max_ns;
    case HOTFN_BY_ALLOC: return t.self_alloc.allocated_bytes;
    default: return t.self_ns;
    }
}

static void rank_function(const hotfn_record *r, uint32_t index, uint32_t by, ranked_function *out)
{
    hotfn_record_function f = HOTFN_RECORD_FUNCTION_INIT;

    hotfn_record_get_function(r, index, &f);
    out->key = get_key(r, index, by);
    out->calls = f.counted ? f.calls + (f.calls < UINT64_MAX) : 0;
    out->name = f.name;
    out->index = index;
    out->is_called = f.counted && f.calls > 0;
}

hotfn_status hotfn_record_sort(const hotfn_record *r, uint32_t by, uint32_t *order,
                               uint32_t capacity)
{
    if (!r || (!order && capacity > 0) || by > HOTFN_BY_NAME) {
        return HOTFN_E_OPTION;
    }

    size_t count = r->function_count, bytes = 2 * count * sizeof(ranked_function);
    ranked_function *items;
    const ranked_function *sorted;

    if (!has_key(r, by)) {
        return HOTFN_E_UNSUPPORTED;
    }
    items = hfn_allocate_zeroed(&r->env, bytes);
    if (!items) {
        return HOTFN_E_NO_MEMORY;
    }
    if (by == HOTFN_BY_DEFAULT) {
        by = has_key(r, HOTFN_BY_SELF)    ? HOTFN_BY_SELF
             : has_key(r, HOTFN_BY_TOTAL) ? HOTFN_BY_TOTAL
                                          : HOTFN_BY_CALLS;
    }
    for (uint32_t i = 0; i < count; i++) {
        rank_function(r, i, by, &items[i]);
    }
    sorted = hfn_sort_items(items, items + count, count, sizeof *items,
                            by == HOTFN_BY_NAME ? comes_before_by_name : comes_before);
    for (size_t i = 0; i < capacity; i++) {
        order[i] = i < count ? sorted[i].index : HOTFN_NO_FUNCTION;
    }
    hfn_free_memory(&r->env, items, bytes);
    return HOTFN_OK;
}
