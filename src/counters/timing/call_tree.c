/* SPDX-License-Identifier: MIT */
/* HOT PATH: what a timed call needs of the shared pools: tree nodes, histograms, the ring of slow
 * calls.  A thread takes nodes in chunks.  Where a pool is empty, the header counts what finds no
 * room.  All registers are kept, and a signal may arrive between any two instructions. */
#include "counters/timing/call_tree.h"

#include "counters/thread_row.h"

#define CHUNK_NODES 32u
#define DEEPEST_NODE 1024u /* a deeper call gets no node of its own */

static uint32_t new_node(hfn_time_state *t, uint32_t parent, uint32_t slot)
{
    hfn_time_header *h = hfn_time.header;
    uint32_t index = __atomic_fetch_add(&t->chunk_next, 1, __ATOMIC_RELAXED);
    uint32_t count = t->single_nodes ? 1 : CHUNK_NODES;
    hfn_time_node *n;

    if (index >= t->chunk_end) {
        if (__atomic_load_n(&h->nodes_used, __ATOMIC_RELAXED) + count > h->node_capacity) {
            return 0;
        }
        index = __atomic_fetch_add(&h->nodes_used, count, __ATOMIC_RELAXED);
        if (index + count > h->node_capacity) {
            return 0;
        }
        t->chunk_next = index + 1;
        t->chunk_end = index + count;
    }
    n = &hfn_time.nodes[index];
    n->parent = parent == 0 ? index : parent - 1;
    n->slot = slot;
    n->thread = t->thread - 1;
    if (parent != 0) {
        n->depth = hfn_time.nodes[parent - 1].depth + 1;
    }
    /* last: with the flag, the node is complete */
    __atomic_store_n(&n->flags, HFN_NODE_USED, __ATOMIC_RELEASE);
    return index + 1;
}

HFN_KEEPS_REGISTERS uint32_t hfn_tree_root(hfn_time_state *t)
{
    if (t->root == 0) {
        t->root = new_node(t, 0, UINT32_MAX);
        if (t->root == 0) { /* the thread's calls have no places */
            __atomic_fetch_add(&hfn_time.header->nodes_merged, 1, __ATOMIC_RELAXED);
        }
    }
    t->node = t->root;
    return t->root;
}

static uint32_t find_child(hfn_time_state *t, uint32_t parent, uint32_t slot)
{
    hfn_time_node *nodes = hfn_time.nodes, *p = &nodes[parent - 1];
    uint32_t child = p->first_child;

    while (child != 0 && nodes[child - 1].slot != slot) {
        child = nodes[child - 1].next_sibling;
    }
    if (child == 0) {
        child = p->depth < DEEPEST_NODE ? new_node(t, parent, slot) : 0;
        if (child == 0) {
            p->flags |= HOTFN_NODE_MERGED;
            __atomic_fetch_add(&hfn_time.header->nodes_merged, 1, __ATOMIC_RELAXED);
            return 0;
        }
        nodes[child - 1].next_sibling = p->first_child;
        p->first_child = child;
    }
    return child;
}

static uint32_t find_and_hint(hfn_time_state *t, uint32_t parent, uint32_t slot)
{
    uint32_t child = find_child(t, parent, slot);

    if (child != 0) {
        *hfn_tree_hint(t, parent, slot) = child - 1;
    }
    return child;
}

HFN_KEEPS_REGISTERS uint32_t hfn_tree_find_child(hfn_time_state *t, uint32_t parent, uint32_t slot)
{
    uint32_t child = find_and_hint(t, parent, slot);

    return HFN_LIKELY(child != 0) ? child : find_and_hint(t, t->root, slot);
}

static HFN_KEEPS_REGISTERS void take_histogram(hfn_time_cell *cell)
{
    hfn_time_header *h = hfn_time.header;
    uint32_t index = h->histogram_capacity;

    if (__atomic_load_n(&h->histograms_used, __ATOMIC_RELAXED) < UINT32_MAX / 2) {
        index = __atomic_fetch_add(&h->histograms_used, 1, __ATOMIC_RELAXED);
    }
    cell->histogram = index < h->histogram_capacity ? index + 1 : UINT32_MAX;
}

/* hotfn/timing.h has the formula. */
HFN_KEEPS_REGISTERS bool hfn_tree_find_bucket(hfn_time_cell *c, uint64_t passed, uint64_t *index)
{
    uint64_t bucket = passed;

    if (HFN_UNLIKELY(c->histogram == 0)) {
        take_histogram(HFN_PASS(c));
    }
    if (c->histogram == UINT32_MAX) {
        return false;
    }
    if (passed >= 64) {
        uint32_t shift = 63 - (uint32_t)__builtin_clzll(passed) - 5;
        bucket = 32 * (uint64_t)shift + (passed >> shift);
    }
    if (bucket >= HOTFN_HISTOGRAM_BUCKETS) {
        bucket = HOTFN_HISTOGRAM_BUCKETS - 1;
    }
    *index = (uint64_t)(c->histogram - 1) * HOTFN_HISTOGRAM_BUCKETS + bucket;
    return true;
}

HFN_KEEPS_REGISTERS void hfn_tree_keep_slow(const hfn_time_state *t, uint32_t slot, uint32_t node,
                                            uint64_t start, uint64_t passed)
{
    uint32_t capacity = hfn_time.header->slow_capacity, number;
    hfn_slow_call *call;

    if (capacity == 0) { /* the session has ended */
        return;
    }
    number = __atomic_fetch_add(&hfn_time.header->slow_used, 1, __ATOMIC_RELAXED);
    call = &hfn_time.slow[number % capacity];
    __atomic_store_n(&call->sequence, 0, __ATOMIC_RELEASE);
    call->start_ticks = start;
    call->ticks = passed;
    call->node = node == 0 ? UINT32_MAX : node - 1;
    call->slot = slot;
    call->thread = t->thread - 1;
    __atomic_store_n(&call->sequence, (uint64_t)number + 1, __ATOMIC_RELEASE);
}
