/* SPDX-License-Identifier: MIT */
/* The passes that sum times: cells by function, nodes of the call tree by edge.  Recursion is
 * counted once: a nested call of the same function adds nothing to the function's total, and a
 * nested call along the same edge adds nothing to the edge's total. */
#include "profile/times_sum.h"

#include "base/sort.h"

static uint64_t add_saturated(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static void add_allocs(hotfn_alloc_cell *sum, const hotfn_alloc_cell *more)
{
    sum->allocated_bytes = add_saturated(sum->allocated_bytes, more->allocated_bytes);
    sum->allocated_blocks = add_saturated(sum->allocated_blocks, more->allocated_blocks);
    sum->freed_bytes = add_saturated(sum->freed_bytes, more->freed_bytes);
    sum->freed_blocks = add_saturated(sum->freed_blocks, more->freed_blocks);
}

/* ---- Cells. */

void hfn_time_sums_add_entry(hfn_slot_sum *sum, const hfn_time_entry *entry, uint32_t flags)
{
    const hfn_time_cell *cell = &entry->cell;

    sum->timed_calls = add_saturated(sum->timed_calls, cell->timed_calls);
    sum->open_calls = add_saturated(sum->open_calls, cell->open);
    sum->total_ticks = add_saturated(sum->total_ticks, cell->total_ticks);
    sum->self_ticks = add_saturated(sum->self_ticks, cell->self_ticks);
    sum->waited_ticks = add_saturated(sum->waited_ticks, cell->waited_ticks);
    sum->total_waited_ticks = add_saturated(sum->total_waited_ticks, entry->total_waited_ticks);
    if (flags & HOTFN_TIMING_ERRORS) {
        sum->total_squares += (double)cell->errors.total * (double)cell->errors.total;
        sum->self_squares += (double)cell->errors.self * (double)cell->errors.self;
    } else if (flags & HOTFN_TIMING_SAMPLED) {
        sum->weight = add_saturated(sum->weight, cell->sampled.weight);
        sum->sample_squares +=
            (double)cell->sampled.squares * (double)(UINT64_C(1) << (2 * HFN_SAMPLE_SHIFT));
    } else {
        sum->callee_timed = add_saturated(sum->callee_timed, cell->callee_timed);
        sum->within_timed = add_saturated(sum->within_timed, cell->within_timed);
    }
    if (cell->max_ticks > sum->max_ticks) {
        sum->max_ticks = cell->max_ticks;
    }
}

/* Like a counting sort: count the entries of each slot, then place each entry in its slot's part of
 * entry_order. */
static bool sum_cells(hfn_time_sums *out, const hfn_sum_input *in)
{
    const hfn_times *t = in->times;
    uint32_t place = 0;

    for (size_t i = 0; i < t->entry_count; i++) {
        if (in->chosen[t->entries[i].thread]) {
            out->slots[t->entries[i].slot].entry_count++;
        }
    }
    for (uint32_t s = 0; s < in->slot_count; s++) {
        out->slots[s].first_entry = place;
        place += out->slots[s].entry_count;
        out->slots[s].entry_count = 0;
        out->slots[s].calls = in->calls[s];
        out->slots[s].function = in->function[s];
    }
    for (size_t i = 0; i < t->entry_count; i++) {
        hfn_slot_sum *sum = &out->slots[t->entries[i].slot];

        if (!in->chosen[t->entries[i].thread]) {
            continue;
        }
        out->entry_order[sum->first_entry + sum->entry_count++] = (uint32_t)i;
        hfn_time_sums_add_entry(sum, &t->entries[i], t->header.flags);
    }
    return true;
}

/* ---- The tree. */

static bool link_nodes(hfn_time_sums *out, const hfn_sum_input *in)
{
    const hfn_times *t = in->times;

    for (uint32_t i = 0; i < t->node_count; i++) {
        out->nodes[i] = (hfn_node_sum){ .edge = UINT32_MAX,
                                        .first_child = UINT32_MAX,
                                        .next_sibling = UINT32_MAX,
                                        .is_chosen = in->chosen[t->nodes[i].thread] };
    }
    for (uint32_t i = t->node_count; i-- > 0;) {
        uint32_t parent = t->nodes[i].parent;

        if (parent != UINT32_MAX) {
            out->nodes[i].next_sibling = out->nodes[parent].first_child;
            out->nodes[parent].first_child = i;
        }
    }
    return true;
}

/* Children follow their parent in the array, so a backward pass completes each node before it is
 * added to its parent. */
static bool sum_memory_below(hfn_time_sums *out, const hfn_sum_input *in)
{
    const hfn_times *t = in->times;

    for (uint32_t i = t->allocs ? t->node_count : 0; i-- > 0;) {
        uint32_t parent = t->nodes[i].parent;

        add_allocs(&out->nodes[i].total_alloc, &t->allocs[i]);
        if (parent != UINT32_MAX) {
            add_allocs(&out->nodes[parent].total_alloc, &out->nodes[i].total_alloc);
        }
    }
    return true;
}

static uint32_t get_caller_slot(const hfn_times *t, uint32_t node)
{
    uint32_t parent = t->nodes[node].parent;

    return parent == UINT32_MAX ? HOTFN_NO_SLOT : t->nodes[parent].slot;
}

typedef struct edge_key {
    uint32_t caller, callee, node;
} edge_key;

static bool comes_before(const void *left, const void *right)
{
    const edge_key *a = left, *b = right;

    if (a->caller != b->caller) {
        return a->caller < b->caller;
    }
    return a->callee != b->callee ? a->callee < b->callee : a->node < b->node;
}

static bool add_edge(hfn_time_sums *out, const edge_key *key)
{
    size_t capacity = out->edge_capacity;
    bool ok = hfn_grow_array(&out->env, (void **)&out->edges, &capacity, out->edge_count + 1u,
                             sizeof *out->edges);

    out->edge_capacity = (uint32_t)capacity;
    if (ok) {
        out->edges[out->edge_count++] =
            (hfn_edge_sum){ .caller = key->caller, .callee = key->callee };
    }
    return ok;
}

static bool assign_edges(hfn_time_sums *out, const edge_key *sorted, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if ((i == 0 || sorted[i].caller != sorted[i - 1].caller ||
             sorted[i].callee != sorted[i - 1].callee) &&
            !add_edge(out, &sorted[i])) {
            return false;
        }
        out->nodes[sorted[i].node].edge = out->edge_count - 1;
    }
    return true;
}

static bool make_edges(hfn_time_sums *out, const hfn_sum_input *in)
{
    const hfn_times *t = in->times;
    size_t bytes = (size_t)t->node_count * sizeof(edge_key);
    edge_key *items = hfn_allocate_zeroed(&out->env, bytes),
             *room = hfn_allocate_zeroed(&out->env, bytes);
    bool ok = items && room;
    uint32_t count = 0;

    for (uint32_t i = 0; ok && i < t->node_count; i++) {
        if (out->nodes[i].is_chosen && (t->nodes[i].calls > 0 || t->nodes[i].timed_calls > 0)) {
            items[count++] = (edge_key){ get_caller_slot(t, i), t->nodes[i].slot, i };
        }
    }
    ok = ok &&
         assign_edges(out, hfn_sort_items(items, room, count, sizeof *items, comes_before), count);
    hfn_free_memory(&out->env, items, bytes);
    hfn_free_memory(&out->env, room, bytes);
    return ok;
}

/* Marks the nodes that have no ancestor of the same function, and those that have none of the same
 * edge.  `path` leads from the root to the current node; `slots` and `edges` count how often each
 * function and edge occurs on it. */
static bool mark_outermost(hfn_time_sums *out, const hfn_sum_input *in)
{
    const hfn_times *t = in->times;
    size_t bytes = ((size_t)t->node_count + out->edge_count + in->slot_count) * sizeof(uint32_t);
    uint32_t *path = hfn_allocate_zeroed(&out->env, bytes);
    uint32_t *edges, *slots, depth = 0;

    if (!path) {
        return false;
    }
    edges = path + t->node_count;
    slots = edges + out->edge_count;
    for (uint32_t i = 0; i < t->node_count; i++) {
        hfn_node_sum *sum = &out->nodes[i];

        while (depth > 0 && path[depth - 1] != t->nodes[i].parent) {
            uint32_t popped = path[--depth];

            slots[t->nodes[popped].slot]--;
            if (out->nodes[popped].edge != UINT32_MAX) {
                edges[out->nodes[popped].edge]--;
            }
        }
        sum->is_outermost_function = slots[t->nodes[i].slot]++ == 0;
        if (sum->edge != UINT32_MAX) {
            sum->is_outermost_edge = edges[sum->edge]++ == 0;
        }
        path[depth++] = i;
    }
    hfn_free_memory(&out->env, path, bytes);
    return true;
}

static void add_to_edge(hfn_edge_sum *edge, const hfn_time_node *n, const hfn_node_sum *sum)
{
    edge->flags |= n->flags & HOTFN_NODE_MERGED;
    edge->calls = add_saturated(edge->calls, n->calls);
    if (sum->is_outermost_edge) {
        edge->total_ticks = add_saturated(edge->total_ticks, n->total_ticks);
        add_allocs(&edge->total_alloc, &sum->total_alloc);
    }
}

static bool sum_nodes(hfn_time_sums *out, const hfn_sum_input *in)
{
    const hfn_times *t = in->times;

    for (uint32_t i = 0; i < t->node_count; i++) {
        const hfn_node_sum *sum = &out->nodes[i];
        hfn_slot_sum *slot = &out->slots[t->nodes[i].slot];

        if (!sum->is_chosen) {
            continue;
        }
        if (sum->edge != UINT32_MAX) {
            add_to_edge(&out->edges[sum->edge], &t->nodes[i], sum);
        }
        if (sum->is_outermost_function) {
            add_allocs(&slot->total_alloc, &sum->total_alloc);
        }
        if (t->allocs) {
            add_allocs(&slot->self_alloc, &t->allocs[i]);
        }
    }
    return true;
}

/* ---- All passes, in order.  Each reads the input and the results of earlier passes; false: no
 * memory. */

typedef bool (*sum_pass)(hfn_time_sums *out, const hfn_sum_input *in);

static const sum_pass passes[] = {
    sum_cells,        /* slots: columns of functions; entry_order        */
    link_nodes,       /* nodes: children                                 */
    sum_memory_below, /* nodes: total_alloc                              */
    make_edges,       /* edges: callers and callees; nodes: edge         */
    mark_outermost,   /* nodes: outermost of their function, their edge  */
    sum_nodes,        /* edges: sums; slots: memory                      */
};

bool hfn_time_sums_make(hfn_time_sums *out, const hfn_sum_input *in, const hotfn_env *env)
{
    bool ok;

    memset(out, 0, sizeof *out);
    out->env = *env;
    out->flags = in->times->header.flags;
    out->slot_count = in->slot_count;
    out->node_count = in->times->node_count;
    out->entry_count = in->times->entry_count;
    out->slots = hfn_allocate_zeroed(env, in->slot_count * sizeof *out->slots);
    out->nodes = hfn_allocate_zeroed(env, out->node_count * sizeof *out->nodes);
    out->entry_order = hfn_allocate_zeroed(env, out->entry_count * sizeof *out->entry_order);
    ok = out->slots && out->nodes && out->entry_order;
    for (size_t i = 0; ok && i < HFN_COUNT_OF(passes); i++) {
        ok = passes[i](out, in);
    }
    if (!ok) {
        hfn_time_sums_finish(out);
    }
    return ok;
}

void hfn_time_sums_finish(hfn_time_sums *s)
{
    hotfn_env env = s->env;

    hfn_free_memory(&env, s->slots, s->slot_count * sizeof *s->slots);
    hfn_free_memory(&env, s->nodes, s->node_count * sizeof *s->nodes);
    hfn_free_memory(&env, s->entry_order, s->entry_count * sizeof *s->entry_order);
    hfn_free_memory(&env, s->edges, s->edge_capacity * sizeof *s->edges);
    memset(s, 0, sizeof *s);
    s->env = env;
}
