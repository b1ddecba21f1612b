/* SPDX-License-Identifier: MIT */
/* HOT PATH: what a timed call needs of the shared pools: tree nodes, histograms, the ring of slow
 * calls.  A thread takes nodes by the chunk; who finds a pool empty says so in the header and goes on
 * without.  As call_stack.c: all registers are kept, a signal may strike anywhere. */
#include "counters/timing/call_stack.h"

#include "counters/thread_row.h"

#define CHUNK_NODES 32u
#define DEEPEST_NODE 1024u /* a deeper call gets no node of its own */

static uint32_t new_node(hfn_time_state *t, uint32_t parent, uint32_t slot)
{
    hfn_time_header *h = hfn_time.header;
    uint32_t index = __atomic_fetch_add(&t->chunk_next, 1, __ATOMIC_RELAXED);
    hfn_time_node *n;

    if (index >= t->chunk_end) {
        if (__atomic_load_n(&h->nodes_used, __ATOMIC_RELAXED) + CHUNK_NODES > h->node_capacity) {
            return 0;
        }
        index = __atomic_fetch_add(&h->nodes_used, CHUNK_NODES, __ATOMIC_RELAXED);
        if (index + CHUNK_NODES > h->node_capacity) {
            return 0;
        }
        t->chunk_next = index + 1;
        t->chunk_end = index + CHUNK_NODES;
    }
    n = &hfn_time.nodes[index];
    n->parent = parent == 0 ? index : parent - 1;
    n->slot = slot;
    n->thread = t->thread - 1;
    if (parent != 0) {
        *hfn_node_depth(n) = *hfn_node_depth(&hfn_time.nodes[parent - 1]) + 1;
    }
    /* last: who sees the flag sees a whole node */
    __atomic_store_n(&n->flags, HFN_NODE_USED, __ATOMIC_RELEASE);
    return index + 1;
}

HFN_KEEPS_REGISTERS uint32_t hfn_tree_root(hfn_time_state *t)
{
    if (t->root == 0) {
        t->root = new_node(t, 0, UINT32_MAX);
        if (t->root == 0) { /* what the thread calls has no places either */
            __atomic_fetch_add(&hfn_time.header->nodes_merged, 1, __ATOMIC_RELAXED);
        }
    }
    t->node = t->root;
    return t->root;
}

/* ---- Hints.  A thread's table of nodes by what they were looked for with: one word each, which is
 * stored whole, half of it the key's; what is found is compared before it is believed. */

typedef struct hint {
    uint64_t *place; /* two of them */
    uint64_t key;    /* the upper half of the word */
} hint;

static hint hint_for(hfn_time_state *t, uint64_t a, uint32_t slot)
{
    uint64_t *hints = (uint64_t *)(void *)((uint8_t *)t + hfn_time.hints_at);
    uint64_t mixed = (a ^ (uint64_t)slot << 40) * UINT64_C(0x9e3779b97f4a7c15);

    return (hint){ &hints[mixed >> (64 - HFN_HINT_BITS) & ~UINT64_C(1)],
                   mixed << HFN_HINT_BITS & UINT64_C(0xffffffff00000000) };
}

static uint32_t read_hint(const hint *h, uint64_t word, uint32_t slot)
{
    uint32_t node = (uint32_t)word;

    return node != 0 && (word ^ h->key) >> 32 == 0 && hfn_time.nodes[node - 1].slot == slot ? node
                                                                                            : 0;
}

/* There are two places for it, side by side. */
static uint32_t hinted_node(const hint *h, uint32_t slot)
{
    uint32_t node = read_hint(h, h->place[0], slot);

    return HFN_LIKELY(node != 0) ? node : read_hint(h, h->place[1], slot);
}

/* The one that was there first gives way. */
static void keep_hint(const hint *h, uint32_t node)
{
    h->place[1] = h->place[0];
    h->place[0] = h->key | node;
}

static uint32_t find_child(hfn_time_state *t, uint32_t parent, uint32_t slot)
{
    hfn_time_node *nodes = hfn_time.nodes, *p = &nodes[parent - 1];
    uint32_t child = p->first_child;

    while (child != 0 && nodes[child - 1].slot != slot) {
        child = nodes[child - 1].next_sibling;
    }
    if (child == 0) {
        child = *hfn_node_depth(p) < DEEPEST_NODE ? new_node(t, parent, slot) : 0;
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

HFN_KEEPS_REGISTERS uint32_t hfn_tree_hint_child(hfn_time_state *t, uint32_t parent, uint32_t slot)
{
    uint32_t child = find_child(t, parent, slot);

    if (child != 0) {
        *hfn_tree_hint(t, parent, slot) = child - 1;
    }
    return child;
}

HFN_KEEPS_REGISTERS uint32_t hfn_tree_child(hfn_time_state *t, uint32_t parent, uint32_t slot)
{
    hint h = hint_for(t, parent, slot);
    uint32_t child = hinted_node(&h, slot);

    if (child == 0 || hfn_time.nodes[child - 1].parent != parent - 1) {
        child = find_child(t, parent, slot);
        keep_hint(&h, child);
    }
    *hfn_node_last_child(&hfn_time.nodes[parent - 1]) = child;
    return child;
}

/* In a run that keeps no tree of calls: a place in a tree of those that allocate.  Its way is that of the log's
 * first `depth` calls, below them one of slot's own if there are none. */
HFN_KEEPS_REGISTERS uint32_t hfn_tree_of_open_calls(hfn_time_state *t, uint32_t depth,
                                                    uint32_t slot)
{
    const hfn_open_call *log = hfn_time_log_of(t);
    uint32_t node = t->node, root = t->root ? t->root : hfn_tree_root(HFN_PASS(t)), at = root,
             child = root;

    t->node = node; /* no call has one */
    for (uint32_t i = 0; child != 0 && i < depth && i < HFN_LOG_CAPACITY; i++) {
        if (log[i].how & HFN_CALL_ENDED) {
            continue;
        }
        child = hfn_tree_child(HFN_PASS(t), HFN_PASS(at), hfn_call_slot(log[i].how));
        at = child ? child : at;
    }
    return at != 0 && at == root ? hfn_tree_child(HFN_PASS(t), HFN_PASS(root), HFN_PASS(slot)) : at;
}

HFN_KEEPS_REGISTERS void hfn_tree_new_histogram(hfn_time_cell *cell)
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
        hfn_tree_new_histogram(HFN_PASS(c));
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
