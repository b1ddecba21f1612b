/* SPDX-License-Identifier: MIT */
/*
 * i386: how many bytes of arguments a callee pops (`ret n` of stdcall, or of functions that
 * return structures).
 *
 * If the callee is known, its returns or its name show the number.  Otherwise the proof assumes
 * that it pops nothing.  If that is wrong, the stack pointer is higher than assumed from there on,
 * and a return that uses it would not find the return address.  So each return at the assumed depth
 * confirms the assumption for all calls on the paths to it.  Blocks from which no such return is
 * reached (`abort` follows, or the frame pointer resets the stack pointer) are unconfirmed: the
 * proof fails if one of them accesses bytes near the return address by the stack pointer.
 */
#include "verdicts/prove.h"

enum { POPS_UNKNOWN = UINT8_MAX };

/* Words that the returns of the function pop, plus 1; POPS_UNKNOWN if the returns differ, or if
 * there is none. */
static uint8_t read_returns(const hfn_analysis *a, const hfn_body *body)
{
    uint8_t words = 0;

    for (uint64_t at = body->rva; body->region && at < body->end;) {
        const uint8_t *bytes = body->region->bytes + (at - body->region->rva);
        hfn_stack_state state;
        hfn_instruction in;
        if (!a->arch->decode(bytes, body->end - at, at, a->info.link_base, &in)) {
            return POPS_UNKNOWN;
        }
        if (in.flow == HFN_FLOW_RETURN) {
            a->arch->begin_stack(&state);
            if (a->arch->step_stack(bytes, body->end - at, at, &state) != HFN_STACK_OK ||
                (words != 0 && words != 1 + state.popped_bytes / 4)) {
                return POPS_UNKNOWN;
            }
            words = (uint8_t)(1 + state.popped_bytes / 4);
        }
        at += in.length;
    }
    return words == 0 ? POPS_UNKNOWN : words;
}

/* As read_returns, for the function at target. */
static uint8_t get_popped_words(const hfn_analysis *a, uint64_t target)
{
    uint32_t index = hfn_analysis_find_body(a, target);
    uint8_t known;

    if (index == a->count || a->bodies[index].rva != target ||
        a->bodies[index].kind == HOTFN_FUNCTION_PLT) {
        return POPS_UNKNOWN;
    }
    known =
        __atomic_load_n(&a->pops[index], __ATOMIC_RELAXED); /* all threads compute the same value */
    if (known == 0) {
        known = read_returns(a, &a->bodies[index]);
        __atomic_store_n(&a->pops[index], known, __ATOMIC_RELAXED);
    }
    return known;
}

void hfn_pops_apply_call(hfn_prover *p, uint64_t target, uint8_t called, hfn_stack_state *state)
{
    const hfn_analysis *a = p->analysis;
    uint8_t stack = a->arch->stack_register, known = get_popped_words(a, target);
    const hfn_slot *slot = known == POPS_UNKNOWN ? hfn_prove_find_slot(p, target) : NULL;

    if (slot && slot->pops_nothing) {
        known = 1;
    } else if (slot && slot->own != UINT64_MAX) {
        known = get_popped_words(a, slot->own);
    }
    if (known == POPS_UNKNOWN) {
        return;
    }
    state->uncertain_calls = called;
    state->at[stack] = hfn_stack_add(state->at[stack], 4 * (known - 1));
}

void hfn_pops_record_step(hfn_prover *p, uint8_t called_before, hfn_stack_state *state,
                          bool returns)
{
    hfn_leader *l;

    p->stored_arguments |= state->stored_arguments;
    hfn_prove_record_objects(p, state);
    if (p->reach < state->argument_bytes) {
        p->reach = state->argument_bytes;
    }
    if (!called_before && !state->uncertain_calls && !state->depends_on_calls) {
        return;
    }
    l = hfn_prove_find_leader(p, p->block);
    l->resets |= called_before > 0 && state->uncertain_calls == 0;
    l->returns |= returns && state->uncertain_calls > 0;
    l->depends_on_calls |= state->depends_on_calls;
    state->depends_on_calls = false;
}

void hfn_pops_add_edge(hfn_prover *p, uint64_t to, const hfn_stack_state *state)
{
    const hfn_cfg_edge edge = { p->block, to };

    if (!state->uncertain_calls || p->block == UINT64_MAX) {
        return;
    }
    if (!hfn_grow_array(&p->analysis->env, (void **)&p->edges, &p->edge_capacity, p->edge_count + 1,
                        sizeof edge)) {
        p->no_memory = true;
        return;
    }
    p->edges[p->edge_count++] = edge;
}

bool hfn_pops_are_consistent(hfn_prover *p)
{
    bool any = true;

    while (any) {
        any = false;
        for (size_t i = p->edge_count; i-- > 0;) {
            const hfn_leader *to = hfn_prove_find_leader(p, p->edges[i].to);
            hfn_leader *from = hfn_prove_find_leader(p, p->edges[i].from);
            if (to->returns && !to->resets && !from->returns && !from->resets) {
                any = from->returns = true;
            }
        }
    }
    for (uint32_t i = 0; i < p->capacity; i++) {
        const hfn_leader *l = &p->leaders[i];
        if (l->rva != UINT64_MAX && l->depends_on_calls && (!l->returns || l->resets)) {
            return false;
        }
    }
    return true;
}
