/* SPDX-License-Identifier: MIT */
/* The callers of a function.  The edges in r->sums are sorted by caller; this file sorts their
 * indices by callee, once for each choice of process and thread, so that each look-up is a binary
 * search. */
#include "base/sort.h"
#include "base/status.h"
#include "profile/profile.h"

typedef struct edge_rank {
    uint64_t calls;
    uint32_t callee, edge;
} edge_rank;

/* Order edges by callee, and those of one callee by descending calls. */
static bool comes_before(const void *left, const void *right)
{
    const edge_rank *a = left, *b = right;

    if (a->callee != b->callee) {
        return a->callee < b->callee;
    }
    return a->calls != b->calls ? a->calls > b->calls : a->edge < b->edge;
}

bool hfn_callers_make(hotfn_record *r, hfn_time_sums *sums)
{
    size_t count = sums->edge_count, bytes = 2 * count * sizeof(edge_rank);
    uint32_t *order = hfn_allocate_unset(&r->env, count * sizeof *order);
    edge_rank *items = hfn_allocate_zeroed(&r->env, bytes);
    const edge_rank *sorted;

    if (!order || !items) {
        hfn_free_memory(&r->env, order, count * sizeof *order);
        hfn_free_memory(&r->env, items, bytes);
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        items[i] = (edge_rank){ sums->edges[i].calls, sums->edges[i].callee, i };
    }
    sorted = hfn_sort_items(items, items + count, count, sizeof *items, comes_before);
    for (size_t i = 0; i < count; i++) {
        order[i] = sorted[i].edge;
    }
    hfn_free_memory(&r->env, items, bytes);
    hfn_callers_free(r);
    r->edges_by_callee = order;
    r->edge_count = sums->edge_count;
    return true;
}

void hfn_callers_free(hotfn_record *r)
{
    hfn_free_memory(&r->env, r->edges_by_callee, r->edge_count * sizeof *r->edges_by_callee);
    r->edges_by_callee = NULL;
    r->edge_count = 0;
}

/* The number of edges whose callee is below slot. */
static uint32_t count_edges_below(const hotfn_record *r, uint64_t slot)
{
    uint32_t low = 0, high = r->edge_count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (r->sums->edges[r->edges_by_callee[middle]].callee < slot) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* The edges to a function are edges_by_callee[first] and the count - 1 after it. */
static uint32_t find_edges(const hotfn_record *r, uint32_t function, uint32_t *first)
{
    uint32_t slot = HOTFN_NO_SLOT;

    if (function < r->function_count) {
        slot = hfn_read_le32(hfn_record_get_element(r, HFN_SECTION_SLOTS, function));
    }
    if (slot >= r->slot_count) {
        return 0;
    }
    *first = count_edges_below(r, slot);
    return count_edges_below(r, (uint64_t)slot + 1) - *first;
}

uint32_t hotfn_record_get_caller_count(const hotfn_record *r, uint32_t index)
{
    uint32_t first;

    return r ? find_edges(r, index, &first) : 0;
}

hotfn_status hotfn_record_get_caller(const hotfn_record *r, uint32_t index, uint32_t position,
                                     hotfn_record_caller *out)
{
    if (!r) {
        return HOTFN_E_OPTION;
    }

    hotfn_record_caller caller = HOTFN_RECORD_CALLER_INIT;
    hotfn_record_edge edge = HOTFN_RECORD_EDGE_INIT;
    uint32_t first;

    if (position >= find_edges(r, index, &first)) {
        return HOTFN_E_NOT_FOUND;
    }
    hotfn_record_get_edge(r, r->edges_by_callee[first + position], &edge);
    caller.function = edge.caller;
    caller.calls = edge.calls;
    return hfn_copy_result(out, &caller, sizeof caller);
}
