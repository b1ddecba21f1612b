/* SPDX-License-Identifier: MIT */
/*
 * The leaders of a proof, each with the stack state on which all paths to it agree, and the memory
 * of the prover.  If a path changes the state of a leader, the leader is queued again.  A change
 * only makes a value unknown, raises a bounded count or replaces a weak path by a strong one, so
 * the proof terminates.
 */
#include "verdicts/prove.h"

#include <string.h>

enum { LEADERS_MAX = 1 << 15, FIRST_CAPACITY = 256 };

/* ---- Memory. */

static bool make_leaders(hfn_prover *p, uint32_t capacity)
{
    p->leaders = hfn_allocate_zeroed(&p->analysis->env, capacity * sizeof *p->leaders);
    p->capacity = p->leaders ? capacity : 0;
    hfn_prove_clear_leaders(p);
    return p->leaders != NULL;
}

void hfn_prove_clear_leaders(hfn_prover *p)
{
    for (uint32_t i = 0; i < p->capacity; i++) {
        p->leaders[i].rva = UINT64_MAX;
    }
    p->count = 0;
}

bool hfn_prover_init(hfn_prover *p, hfn_analysis *a, const hfn_verdict *items)
{
    *p = (hfn_prover){ .analysis = a, .items = items };
    return make_leaders(p, FIRST_CAPACITY);
}

void hfn_prover_finish(hfn_prover *p)
{
    const hotfn_env *env = &p->analysis->env;

    hfn_free_memory(env, p->leaders, p->capacity * sizeof *p->leaders);
    hfn_free_memory(env, p->queue, p->queue_capacity * sizeof *p->queue);
    hfn_free_memory(env, p->calls, p->call_capacity * sizeof *p->calls);
    hfn_free_memory(env, p->tails, p->tail_capacity * sizeof *p->tails);
    hfn_free_memory(env, p->parts, p->part_capacity * sizeof *p->parts);
    hfn_free_memory(env, p->objects, p->object_capacity * sizeof *p->objects);
    hfn_free_memory(env, p->edges, p->edge_capacity * sizeof *p->edges);
}

bool hfn_prove_append(hfn_prover *p, void **items, size_t *count, size_t *capacity,
                      const void *item, size_t bytes)
{
    if (!hfn_grow_array(&p->analysis->env, items, capacity, *count + 1, bytes)) {
        p->no_memory = true;
        return false;
    }
    memcpy((char *)*items + (*count)++ * bytes, item, bytes);
    return true;
}

/* ---- The table, by rva, and the queue of leaders to follow. */

hfn_leader *hfn_prove_find_leader(const hfn_prover *p, uint64_t rva)
{
    uint32_t at = (uint32_t)(rva * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (p->capacity - 1);

    while (p->leaders[at].rva != UINT64_MAX && p->leaders[at].rva != rva) {
        at = (at + 1) & (p->capacity - 1);
    }
    return &p->leaders[at];
}

static bool append_to_queue(hfn_prover *p, const hfn_leader *l)
{
    uint32_t index = (uint32_t)(l - p->leaders);

    return hfn_prove_append(p, (void **)&p->queue, &p->queue_count, &p->queue_capacity, &index,
                            sizeof index);
}

static void enqueue_leader(hfn_prover *p, hfn_leader *l)
{
    if (!l->queued && append_to_queue(p, l)) {
        l->queued = true;
    }
}

/* Double the table, and rebuild the queue, which holds indices of the table. */
static bool grow_table(hfn_prover *p)
{
    hfn_leader *old = p->leaders;
    uint32_t old_capacity = p->capacity;

    if (!make_leaders(p, old_capacity * 2)) {
        p->leaders = old;
        p->capacity = old_capacity;
        p->no_memory = true;
        return false;
    }
    p->queue_count = 0;
    for (uint32_t i = 0; i < old_capacity; i++) {
        if (old[i].rva == UINT64_MAX) {
            continue;
        }
        hfn_leader *to = hfn_prove_find_leader(p, old[i].rva);
        *to = old[i];
        p->count++;
        if (to->queued) {
            append_to_queue(p, to);
        }
    }
    hfn_free_memory(&p->analysis->env, old, old_capacity * sizeof *old);
    return !p->no_memory;
}

/* ---- Merging of paths. */

/* If two paths disagree on the depth of the stack, the weak one is dropped; the proof fails if both
 * or neither are weak. */
static uint32_t merge_into_leader(hfn_prover *p, hfn_leader *l, const hfn_stack_state *state,
                                  bool weak)
{
    uint8_t stack = p->analysis->arch->stack_register;
    bool changed = false;

    if (l->state.at[stack] != state->at[stack] &&
        !(hfn_stack_is_at_most(l->state.at[stack]) && hfn_stack_is_at_most(state->at[stack]))) {
        if (l->weak == weak) {
            return HOTFN_REASON_STACK_UNKNOWN;
        }
        if (weak) {
            return HOTFN_REASON_NONE;
        }
        l->state = *state;
        changed = true;
    }
    changed |= hfn_stack_merge(&l->state, state, l->changes >= HFN_WIDEN_AFTER);
    l->changes += changed && l->changes < HFN_WIDEN_AFTER;
    l->weak = l->weak && weak;
    if (changed) {
        enqueue_leader(p, l);
    }
    return HOTFN_REASON_NONE;
}

uint32_t hfn_prove_add_edge(hfn_prover *p, uint64_t rva, const hfn_stack_state *state, bool weak)
{
    hfn_leader *l;

    hfn_pops_add_edge(p, rva, state);
    if (p->count >= LEADERS_MAX || (p->count * 2 >= p->capacity && !grow_table(p))) {
        return HOTFN_REASON_STACK_UNKNOWN;
    }
    l = hfn_prove_find_leader(p, rva);
    if (l->rva == rva) {
        return merge_into_leader(p, l, state, weak);
    }
    *l = (hfn_leader){ .rva = rva, .state = *state, .weak = weak };
    p->count++;
    enqueue_leader(p, l);
    return HOTFN_REASON_NONE;
}
