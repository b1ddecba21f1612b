/* SPDX-License-Identifier: MIT */
/* HOT PATH: what a timed call needs of the shared pools: tree nodes, histograms, the ring of slow
 * calls.  A thread takes nodes by the chunk; who finds a pool empty says so in the header and goes on
 * without.  As call_stack.c: all registers are kept, a signal may strike anywhere. */
#include "counters/timing/call_stack.h"

#include "counters/thread_row.h"

#define CHUNK_NODES 32u
#define DEEPEST_NODE 1024u /* a deeper call gets no node of its own */

/* Its nodes are two levels deep, and have other uses for some words. */
static bool is_sample(void)
{
    return (hfn_time.flags & HOTFN_TIMING_SAMPLED) != 0;
}

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
    if (parent != 0 && !is_sample()) {
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
    uint64_t key;    /* the upper half of the word               */
    uint32_t lower;  /* more of what it was looked for with: see FARTHER */
} hint;

/* In the place of a node: what it is looked for with does not tell it, a caller farther up has to be known.  Below it so
 * many words to where that one's return address stands.  A wrong number would have us read where nothing is, so 15 more bits of
 * what it is for stand there, which makes 59 with the half above and the place. */
#define FARTHER UINT32_C(0x80000000)
#define FARTHER_WORDS UINT32_C(0xffff)

static hint hint_for(hfn_time_state *t, uint64_t a, uint32_t slot)
{
    uint64_t *hints = (uint64_t *)(void *)((uint8_t *)t + hfn_time.hints_at);
    uint64_t mixed = (a ^ (uint64_t)slot << 40) * UINT64_C(0x9e3779b97f4a7c15);

    return (hint){ &hints[mixed >> (64 - HFN_HINT_BITS) & ~UINT64_C(1)],
                   mixed << HFN_HINT_BITS & UINT64_C(0xffffffff00000000),
                   FARTHER | (uint32_t)(mixed >> (17 - HFN_HINT_BITS) & 0x7fff) << 16 };
}

/* A node of the slot, a word with FARTHER, or 0. */
static uint32_t told_by(const hint *h, uint64_t word, uint32_t slot)
{
    uint32_t node = (uint32_t)word;

    if (node == 0 || (word ^ h->key) >> 32 != 0) {
        return 0;
    }
    if (HFN_UNLIKELY(node & FARTHER)) {
        return (node & ~FARTHER_WORDS) == h->lower ? node : 0;
    }
    return hfn_time.nodes[node - 1].slot == slot ? node : 0;
}

/* There are two places for it, side by side. */
static uint32_t hinted(const hint *h, uint32_t slot)
{
    uint32_t node = told_by(h, h->place[0], slot);

    return HFN_LIKELY(node != 0) ? node : told_by(h, h->place[1], slot);
}

/* The one that was there first gives way. */
static void keep_hint(const hint *h, uint32_t node)
{
    h->place[1] = h->place[0];
    h->place[0] = h->key | node;
}

static uint32_t hinted_node(const hint *h, uint32_t slot)
{
    uint32_t node = hinted(h, slot);

    return node & FARTHER ? 0 : node;
}

static uint32_t find_child(hfn_time_state *t, uint32_t parent, uint32_t slot)
{
    hfn_time_node *nodes = hfn_time.nodes, *p = &nodes[parent - 1];
    uint32_t child = p->first_child;

    while (child != 0 && nodes[child - 1].slot != slot) {
        child = nodes[child - 1].next_sibling;
    }
    if (child == 0) {
        child = is_sample() || *hfn_node_depth(p) < DEEPEST_NODE ? new_node(t, parent, slot) : 0;
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
    if (!is_sample()) {
        *hfn_node_last_child(&hfn_time.nodes[parent - 1]) = child;
    }
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

const hfn_code_map *hfn_time_code;

/* NULL: nobody's code that is known. */
static const hfn_code_range *range_at(const hfn_code_map *map, uint64_t address)
{
    uint64_t low = 0, high = map ? map->count : 0;

    while (low < high) { /* the first range that ends behind it */
        uint64_t middle = low + (high - low) / 2;
        if (map->ranges[middle].end <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return map && low < map->count && address >= map->ranges[low].begin ? &map->ranges[low] : NULL;
}

static const hfn_code_map *code_map(void)
{
    return __atomic_load_n(&hfn_time_code, __ATOMIC_ACQUIRE); /* pairs with hfn_timing_set_code */
}

/* So far above the frame that the body's stack is aligned as the caller's. */
static const uintptr_t *return_address_above(const hfn_time_frame *frame)
{
    const uintptr_t *above = (const void *)(frame + 1);

    return above + ((uint32_t)frame->slot >> HFN_FRAME_APART_SHIFT) * 2;
}

/* A timed call ended in a jump to the one whose return address stands at `place`: it goes back to the stub of that
 * call, whose frame lies just above.  UINT32_MAX: it did not. */
static uint32_t jumped_from(hfn_time_state *t, const uintptr_t *place)
{
    uint32_t depth = t->depth;
    uint64_t above = (uint64_t)(uintptr_t)(place + 1);
    const hfn_open_call *top =
        hfn_time_log_of(t) + depth - 1; /* there is one in front of the first */

    return depth <= HFN_LOG_CAPACITY && top->frame - above <= HFN_MAX_BELOW_FRAME &&
                   hfn_call_slot(top->how) + 1 == t->current
               ? hfn_call_slot(top->how)
               : UINT32_MAX;
}

/* ---- The way to a call that a counted-only function made.  Such a function has no frame of ours that would say who
 * called it, but its unwind data tell where its return address lies (code_map.c).  So callers are looked at one after the
 * other, up to one that is timed, or nobody's. */

#define WAY_MOST 16u
/* All that is rare or longer keeps its registers itself, so that who calls it for few of the calls need not. */
#define RARE HFN_KEEPS_REGISTERS __attribute__((noinline))

/* Is there surely something to read so many words above a return address?  Unwind data may be wrong: only on its page,
 * and on the thread's own stack. */
static bool may_be_read(const hfn_time_state *t, const uintptr_t *place, uint32_t words)
{
    enum { PAGE_SHIFT = 12 };
    uint64_t from = (uint64_t)(uintptr_t)place; /* a pointer could wrap where it has 32 bits */
    uint64_t last = from + (words + UINT64_C(1)) * sizeof *place - 1;

    return (from ^ last) >> PAGE_SHIFT == 0 || (from >= t->stack_begin && last < t->stack_end);
}

/* What a call is looked for with, one caller farther up. */
static uint64_t farther_key(uint64_t key, uint64_t return_address)
{
    return key * UINT64_C(0xff51afd7ed558ccd) + return_address;
}

/* What a call is looked for with that goes back there.  Modules come and go, and their code takes the place of others':
 * with each map of the code it is another, so that nothing is found any more that was kept by an earlier one. */
static uint64_t first_key(uintptr_t return_address, uintptr_t hints_of)
{
    return return_address ^ hints_of;
}

/* The root has many children, all others few: no hints of theirs, which would take the places of those of calls. */
static uint32_t below(hfn_time_state *t, uint32_t parent, uint32_t slot)
{
    return parent == t->root ? hfn_tree_child(HFN_PASS(t), HFN_PASS(parent), HFN_PASS(slot))
                             : find_child(t, parent, slot);
}

/* UINT32_MAX: nobody that is known. */
static uint32_t caller_at(hfn_time_state *t, const hfn_code_range *range, const uintptr_t *place)
{
    return range && range->slot != UINT32_MAX ? range->slot : jumped_from(t, place);
}

/* Below the root a node a caller that is timed, or whose own caller is not known, below that its callees, or first
 * the counted-only functions by whose calls it came to them; one that calls itself has one node. */
static RARE uint32_t find_way(hfn_time_state *t, const uintptr_t *place, uint32_t slot)
{
    uint32_t parent = t->root ? t->root : hfn_tree_root(HFN_PASS(t)), count = 0, before, words;
    uint32_t callers[WAY_MOST + 1];
    /* before the map is looked at: pairs with hfn_timing_set_code */
    uint64_t key = first_key(*place, __atomic_load_n(&hfn_time.hints_of, __ATOMIC_ACQUIRE));
    hint h = hint_for(t, key, slot);
    bool may_go_on = true;

    for (;;) {
        const hfn_code_range *range = range_at(code_map(), (uint64_t)*place - 1);
        callers[count++] = caller_at(t, range, place);
        words = range ? range->behind / (uint32_t)sizeof(uintptr_t) & FARTHER_WORDS : 0;
        if (words == 0 || count > WAY_MOST) {
            break;
        }
        may_go_on = may_be_read(t, place, words);
        if (!may_go_on) {
            break;
        }
        keep_hint(&h, h.lower | words);
        place += words;
        key = farther_key(key, *place);
        h = hint_for(t, key, slot);
    }
    for (before = UINT32_MAX; parent != 0 && count > 0; before = callers[count]) {
        if (callers[--count] != UINT32_MAX && callers[count] != before) {
            parent = below(t, parent, callers[count]);
        }
    }
    parent = parent != 0 ? below(t, parent, slot) : 0;
    if (may_go_on) { /* on another stack it may */
        keep_hint(&h, parent);
    }
    return parent;
}

static RARE uint32_t called_by_the_way(hfn_time_state *t, const uintptr_t *first, uint32_t slot)
{
    const uintptr_t *place = first;
    uint64_t key = first_key(*place, __atomic_load_n(&hfn_time.hints_of, __ATOMIC_RELAXED));

    for (;;) {
        hint h = hint_for(t, key, slot);
        uint32_t node = hinted(&h, slot);
        if (HFN_LIKELY(node != 0 && !(node & FARTHER))) {
            return node;
        }
        if (node == 0 || !may_be_read(t, place, node & FARTHER_WORDS)) {
            return find_way(HFN_PASS(t), HFN_PASS(first), HFN_PASS(slot));
        }
        place += node & FARTHER_WORDS;
        key = farther_key(key, *place);
    }
}

HFN_KEEPS_REGISTERS uint32_t hfn_tree_called_from(hfn_time_state *t, const hfn_time_frame *frame,
                                                  uint32_t slot)
{
    const uintptr_t *place = return_address_above(frame);
    uint64_t key = first_key(*place, __atomic_load_n(&hfn_time.hints_of, __ATOMIC_RELAXED));
    hint h = hint_for(t, key, slot);
    uint32_t node = hinted(&h, slot);

    return HFN_LIKELY(node != 0 && !(node & FARTHER))
               ? node
               : called_by_the_way(HFN_PASS(t), HFN_PASS(place), HFN_PASS(slot));
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
