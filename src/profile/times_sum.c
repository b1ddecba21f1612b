/* SPDX-License-Identifier: MIT */
/* Summing timing up: cells by function, nodes into edges.  Recursion counts once: a call within a
 * call of the same function adds nothing to its total, nor one within the same edge to the edge's. */
#include "profile/times_sum.h"

#include "base/sort.h"

static uint64_t add(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static void add_allocs(hotfn_alloc_cell *sum, const hotfn_alloc_cell *more)
{
    sum->allocated_bytes = add(sum->allocated_bytes, more->allocated_bytes);
    sum->allocated_blocks = add(sum->allocated_blocks, more->allocated_blocks);
    sum->freed_bytes = add(sum->freed_bytes, more->freed_bytes);
    sum->freed_blocks = add(sum->freed_blocks, more->freed_blocks);
}

/* ---- Cells. */

static void add_cell(hfn_slot_sum *sum, const hfn_time_cell *cell, uint32_t flags)
{
    sum->timed_calls = add(sum->timed_calls, cell->timed_calls);
    sum->open_calls = add(sum->open_calls, cell->open);
    sum->total_ticks = add(sum->total_ticks, cell->total_ticks);
    sum->self_ticks = add(sum->self_ticks, cell->self_ticks);
    sum->outermost_timed = add(sum->outermost_timed, cell->timed_calls);
    if (flags & HOTFN_TIMING_ERRORS) {
        sum->total_squares += (double)cell->errors.total * (double)cell->errors.total;
        sum->self_squares += (double)cell->errors.self * (double)cell->errors.self;
    } else if (flags & HOTFN_TIMING_SAMPLED) {
        sum->weight = add(sum->weight, cell->sampled.weight);
        sum->sample_squares +=
            (double)cell->sampled.squares * (double)(UINT64_C(1) << (2 * HFN_SAMPLE_SHIFT));
    } else {
        sum->callee_timed = add(sum->callee_timed, cell->callee_timed);
        sum->within_timed = add(sum->within_timed, cell->within_timed);
    }
    if (cell->min_ticks && (sum->min_ticks == 0 || cell->min_ticks < sum->min_ticks)) {
        sum->min_ticks = cell->min_ticks;
    }
    if (cell->max_ticks > sum->max_ticks) {
        sum->max_ticks = cell->max_ticks;
    }
}

/* Two passes, as in a counting sort: how many entries a slot has, then each at its place. */
static void sum_cells(hfn_time_sums *out, const hfn_sum_input *in)
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
        add_cell(sum, &t->entries[i].cell, t->header.flags);
    }
}

static void sum_threads(hfn_time_sums *out, const hfn_times *t)
{
    for (size_t i = 0; i < t->entry_count; i++) {
        hfn_thread_sum *sum = &out->threads[t->entries[i].thread];

        sum->timed_calls = add(sum->timed_calls, t->entries[i].cell.timed_calls);
    }
    for (uint32_t i = 0; i < t->node_count; i++) {
        hfn_thread_sum *sum = &out->threads[t->nodes[i].thread];

        if (t->nodes[i].parent == UINT32_MAX) {
            sum->outermost_timed = add(sum->outermost_timed, t->nodes[i].timed_calls);
        }
    }
}

/* ---- The tree. */

static void link_nodes(hfn_time_sums *out, const hfn_times *t)
{
    for (uint32_t s = 0; s < out->slot_count; s++) {
        out->slots[s].first_node = UINT32_MAX;
    }
    for (uint32_t i = 0; i < t->node_count; i++) {
        out->nodes[i] = (hfn_node_sum){ .first_child = UINT32_MAX };
    }
    for (uint32_t i = t->node_count; i-- > 0;) {
        const hfn_time_node *n = &t->nodes[i];

        out->nodes[i].next_of_slot = out->slots[n->slot].first_node;
        out->slots[n->slot].first_node = i;
        out->nodes[i].next_sibling = UINT32_MAX;
        if (n->parent == UINT32_MAX) {
            continue;
        }
        out->nodes[i].next_sibling = out->nodes[n->parent].first_child;
        out->nodes[n->parent].first_child = i;
    }
}

/* From the last to the first: what is below a node is complete when its parent's turn comes. */
static void sum_below(hfn_time_sums *out, const hfn_sum_input *in)
{
    const hfn_times *t = in->times;

    for (uint32_t i = t->node_count; i-- > 0;) {
        const hfn_time_node *n = &t->nodes[i];
        hfn_node_sum *sum = &out->nodes[i];

        sum->is_chosen = in->chosen[n->thread];
        if (t->allocs) {
            add_allocs(&sum->total_alloc, &t->allocs[i]);
        }
        if (n->parent == UINT32_MAX) {
            continue;
        }
        out->nodes[n->parent].below_timed =
            add(out->nodes[n->parent].below_timed, add(n->timed_calls, sum->below_timed));
        add_allocs(&out->nodes[n->parent].total_alloc, &sum->total_alloc);
    }
}

static uint32_t caller_slot(const hfn_times *t, uint32_t node)
{
    uint32_t parent = t->nodes[node].parent;

    return parent == UINT32_MAX ? HOTFN_NO_SLOT : t->nodes[parent].slot;
}

typedef struct keyed {
    uint32_t caller, callee, node;
} keyed;

static bool comes_before(const void *left, const void *right)
{
    const keyed *a = left, *b = right;

    if (a->caller != b->caller) {
        return a->caller < b->caller;
    }
    return a->callee != b->callee ? a->callee < b->callee : a->node < b->node;
}

static bool new_edge(hfn_time_sums *out, const keyed *key)
{
    size_t capacity = out->edge_capacity;
    bool held = hfn_grow_array(&out->env, (void **)&out->edges, &capacity, out->edge_count + 1u,
                               sizeof *out->edges);

    out->edge_capacity = (uint32_t)capacity;
    if (held) {
        out->edges[out->edge_count++] =
            (hfn_edge_sum){ .caller = key->caller, .callee = key->callee };
    }
    return held;
}

static bool name_edges(hfn_time_sums *out, const keyed *sorted, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if ((i == 0 || sorted[i].caller != sorted[i - 1].caller ||
             sorted[i].callee != sorted[i - 1].callee) &&
            !new_edge(out, &sorted[i])) {
            return false;
        }
        out->nodes[sorted[i].node].edge = out->edge_count - 1;
    }
    return true;
}

static bool make_edges(hfn_time_sums *out, const hfn_sum_input *in)
{
    const hfn_times *t = in->times;
    size_t bytes = (size_t)t->node_count * sizeof(keyed);
    keyed *items = hfn_allocate_zeroed(&out->env, bytes),
          *room = hfn_allocate_zeroed(&out->env, bytes);
    bool held = items && room;
    uint32_t count = 0;

    for (uint32_t i = 0; i < t->node_count; i++) {
        out->nodes[i].edge = UINT32_MAX;
    }
    for (uint32_t i = 0; held && i < t->node_count; i++) {
        if (out->nodes[i].is_chosen && (t->nodes[i].calls > 0 || t->nodes[i].timed_calls > 0)) {
            items[count++] = (keyed){ caller_slot(t, i), t->nodes[i].slot, i };
        }
    }
    held = held &&
           name_edges(out, hfn_sort_items(items, room, count, sizeof *items, comes_before), count);
    hfn_free_memory(&out->env, items, bytes);
    hfn_free_memory(&out->env, room, bytes);
    return held;
}

/* Which nodes have no ancestor of their function, and none of their edge: walked with the way from
 * the top in hand, and how often each function and edge stands on it. */
static bool mark_outermost(hfn_time_sums *out, const hfn_sum_input *in)
{
    const hfn_times *t = in->times;
    size_t bytes = ((size_t)t->node_count + out->edge_count + in->slot_count) * sizeof(uint32_t);
    uint32_t *way = hfn_allocate_zeroed(&out->env, bytes);
    uint32_t *edges, *slots, depth = 0;

    if (!way) {
        return false;
    }
    edges = way + t->node_count;
    slots = edges + out->edge_count;
    for (uint32_t i = 0; i < t->node_count; i++) {
        hfn_node_sum *sum = &out->nodes[i];

        while (depth > 0 && way[depth - 1] != t->nodes[i].parent) {
            uint32_t left = way[--depth];

            slots[t->nodes[left].slot]--;
            if (out->nodes[left].edge != UINT32_MAX) {
                edges[out->nodes[left].edge]--;
            }
        }
        sum->is_outermost_function = slots[t->nodes[i].slot]++ == 0;
        if (sum->edge != UINT32_MAX) {
            sum->is_outermost_edge = edges[sum->edge]++ == 0;
        }
        way[depth++] = i;
    }
    hfn_free_memory(&out->env, way, bytes);
    return true;
}

static void add_to_edge(hfn_edge_sum *edge, const hfn_time_node *n, const hfn_node_sum *sum)
{
    edge->flags |= n->flags & HOTFN_NODE_MERGED;
    edge->calls = add(edge->calls, n->calls);
    edge->timed_calls = add(edge->timed_calls, n->timed_calls);
    if (!sum->is_outermost_edge) {
        return;
    }
    edge->total_ticks = add(edge->total_ticks, n->total_ticks);
    edge->within_timed = add(edge->within_timed, add(n->timed_calls, sum->below_timed));
    edge->outermost_timed = add(edge->outermost_timed, n->timed_calls);
    add_allocs(&edge->total_alloc, &sum->total_alloc);
}

static void add_node(hfn_time_sums *out, const hfn_times *t, uint32_t i)
{
    const hfn_time_node *n = &t->nodes[i];
    const hfn_node_sum *sum = &out->nodes[i];
    hfn_slot_sum *slot = &out->slots[n->slot];
    hfn_edge_sum *edge = sum->edge != UINT32_MAX ? &out->edges[sum->edge] : NULL;

    if (edge) {
        add_to_edge(edge, n, sum);
    }
    if (sum->is_outermost_function) {
        if (out->flags & HOTFN_TIMING_TREE) {
            slot->within_timed = add(slot->within_timed, add(n->timed_calls, sum->below_timed));
            slot->outermost_timed = add(slot->outermost_timed, n->timed_calls);
        }
        add_allocs(&slot->total_alloc, &sum->total_alloc);
    }
    if (t->allocs) {
        add_allocs(&slot->self_alloc, &t->allocs[i]);
    }
}

static bool sum_tree(hfn_time_sums *out, const hfn_sum_input *in)
{
    const hfn_times *t = in->times;
    bool knows_calls = (out->flags & HOTFN_TIMING_TREE) != 0 && t->node_count > 0;

    link_nodes(out, t);
    sum_below(out, in);
    if (!make_edges(out, in) || !mark_outermost(out, in)) {
        return false;
    }
    for (uint32_t s = 0; knows_calls && s < in->slot_count; s++) {
        out->slots[s].within_timed = out->slots[s].outermost_timed = 0; /* the tree knows better */
    }
    for (uint32_t i = 0; i < t->node_count; i++) {
        if (out->nodes[i].is_chosen) {
            add_node(out, t, i);
        }
    }
    return true;
}

/* Neither a tree nor a count of what is below: what it called itself is the least there was. */
static void assume_within(hfn_time_sums *out)
{
    for (uint32_t s = 0; s < out->slot_count; s++) {
        if (out->slots[s].within_timed == 0 && !(out->flags & HOTFN_TIMING_SAMPLED)) {
            out->slots[s].within_timed =
                add(out->slots[s].outermost_timed, out->slots[s].callee_timed);
        }
    }
}

bool hfn_time_sums_make(hfn_time_sums *out, const hfn_sum_input *in, const hotfn_env *env)
{
    memset(out, 0, sizeof *out);
    out->env = *env;
    out->flags = in->times->header.flags;
    out->slot_count = in->slot_count;
    out->node_count = in->times->node_count;
    out->entry_count = in->times->entry_count;
    out->thread_count = in->times->thread_count;
    out->threads = hfn_allocate_zeroed(env, out->thread_count * sizeof *out->threads);
    out->slots = hfn_allocate_zeroed(env, in->slot_count * sizeof *out->slots);
    out->nodes = hfn_allocate_zeroed(env, out->node_count * sizeof *out->nodes);
    out->entry_order = hfn_allocate_zeroed(env, out->entry_count * sizeof *out->entry_order);
    if (out->threads && out->slots && out->nodes && out->entry_order) {
        sum_threads(out, in->times);
        sum_cells(out, in);
        if (sum_tree(out, in)) {
            assume_within(out);
            return true;
        }
    }
    hfn_time_sums_finish(out);
    return false;
}

void hfn_time_sums_finish(hfn_time_sums *s)
{
    hotfn_env env = s->env;

    hfn_free_memory(&env, s->threads, s->thread_count * sizeof *s->threads);
    hfn_free_memory(&env, s->slots, s->slot_count * sizeof *s->slots);
    hfn_free_memory(&env, s->nodes, s->node_count * sizeof *s->nodes);
    hfn_free_memory(&env, s->entry_order, s->entry_count * sizeof *s->entry_order);
    hfn_free_memory(&env, s->edges, s->edge_capacity * sizeof *s->edges);
    memset(s, 0, sizeof *s);
    s->env = env;
}
