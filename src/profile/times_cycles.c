/* SPDX-License-Identifier: MIT */
/* Which functions call each other in circles: Tarjan's strongly connected components (SIAM J. Comput. 1,
 * 1972) of the graph of edges, with a stack of our own in the place of recursion. */
#include "profile/times_sum.h"

#include "base/search.h"

enum { UNSEEN = 0 };

typedef struct search {
    hfn_time_sums *sums;
    uint32_t *order;   /* when a function was met, from 1 on           */
    uint32_t *low;     /* the earliest that it leads back to           */
    uint32_t *next;    /* its next edge to follow                      */
    uint32_t *way;     /* from the first function to the one looked at */
    uint32_t *waiting; /* met, and of no component yet                 */
    uint32_t met, way_count, waiting_count;
} search;

static uint32_t first_edge(const hfn_time_sums *s, uint32_t caller)
{
    return (uint32_t)hfn_count_below_u32(s->edges, s->edge_count, sizeof *s->edges,
                                         offsetof(hfn_edge_sum, caller), caller);
}

static void meet(search *s, uint32_t slot)
{
    s->order[slot] = s->low[slot] = ++s->met;
    s->next[slot] = first_edge(s->sums, slot);
    s->way[s->way_count++] = slot;
    s->waiting[s->waiting_count++] = slot;
}

/* All that was met since is its component, as nothing leads further back. */
static void close(search *s, uint32_t slot)
{
    uint32_t one;

    do {
        one = s->waiting[--s->waiting_count];
        s->sums->slots[one].cycle = slot;
        s->low[one] = UINT32_MAX; /* leads nowhere any more */
    } while (one != slot);
}

static void step(search *s)
{
    uint32_t slot = s->way[s->way_count - 1], edge = s->next[slot]++, callee, caller;

    if (edge < s->sums->edge_count && s->sums->edges[edge].caller == slot) {
        callee = s->sums->edges[edge].callee;
        if (s->order[callee] == UNSEEN) {
            meet(s, callee);
        } else if (s->low[callee] != UINT32_MAX && s->order[callee] < s->low[slot]) {
            s->low[slot] = s->order[callee];
        }
        return;
    }
    s->way_count--;
    uint32_t low = s->low[slot];
    if (low == s->order[slot]) {
        close(s, slot);
    } else if (s->way_count > 0) {
        caller = s->way[s->way_count - 1];
        s->low[caller] = low < s->low[caller] ? low : s->low[caller];
    }
}

bool hfn_time_find_cycles(hfn_time_sums *sums)
{
    uint32_t count = sums->slot_count;
    uint32_t *memory = hfn_allocate_zeroed(&sums->env, 5 * (size_t)count * sizeof *memory);
    search s = { .sums = sums };

    if (!memory) {
        return false;
    }
    s.order = memory;
    s.low = s.order + count;
    s.next = s.low + count;
    s.way = s.next + count;
    s.waiting = s.way + count;
    for (uint32_t slot = 0; slot < count; slot++) {
        if (s.order[slot] != UNSEEN) {
            continue;
        }
        meet(&s, slot);
        while (s.way_count > 0) {
            step(&s);
        }
    }
    hfn_free_memory(&sums->env, memory, 5 * (size_t)count * sizeof *memory);
    return true;
}
