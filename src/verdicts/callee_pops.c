/* SPDX-License-Identifier: MIT */
/*
 * How much a callee takes from the stack when it returns is its own affair on i386: `ret n` of a stdcall,
 * or of a function that returns a struct.  Where the callee is known its returns tell, or its name.  Else
 * the proof believes that it takes nothing.  If it does take some, the stack pointer is higher than
 * believed from there on, and at a return that is reached by it alone it is not where the proof says: so
 * each return that fits shows that all calls on the ways to it took nothing.  What remains are places that
 * lead to no such return (`abort` follows, or the frame pointer sets the stack pointer anew): if one of
 * them touches something close to the return address by the stack pointer, the proof ends.
 */
#include "verdicts/prove.h"

enum { CANNOT_BE_TOLD = UINT8_MAX };

/* All returns of the function take as much along.  Not of one that has none: it may jump on to others. */
static uint8_t read_returns(const hfn_judging *j, const hfn_subject *s)
{
    uint8_t words = 0;

    for (uint64_t at = s->rva; s->region && at < s->end;) {
        const uint8_t *bytes = s->region->bytes + (at - s->region->rva);
        hfn_stack_state state;
        hfn_instruction in;
        if (!j->arch->decode(bytes, s->end - at, at, j->info.link_base, &in)) {
            return CANNOT_BE_TOLD;
        }
        if (in.flow == HFN_FLOW_RETURN) {
            j->arch->begin_stack(&state);
            if (j->arch->step_stack(bytes, s->end - at, at, &state) != HFN_STACK_OK ||
                (words != 0 && words != 1 + state.popped_bytes / 4)) {
                return CANNOT_BE_TOLD;
            }
            words = (uint8_t)(1 + state.popped_bytes / 4);
        }
        at += in.length;
    }
    return words == 0 ? CANNOT_BE_TOLD : words;
}

static uint8_t pops_of(const hfn_judging *j, uint64_t target)
{
    uint32_t index = hfn_judging_lower(j, target);
    uint8_t known;

    if (index == j->count || j->subjects[index].rva != target ||
        j->subjects[index].kind == HOTFN_FUNCTION_PLT) {
        return CANNOT_BE_TOLD;
    }
    known = __atomic_load_n(&j->pops[index], __ATOMIC_RELAXED); /* all threads find the same */
    if (known == 0) {
        known = read_returns(j, &j->subjects[index]);
        __atomic_store_n(&j->pops[index], known, __ATOMIC_RELAXED);
    }
    return known;
}

void hfn_pops_call(hfn_prover *p, uint64_t target, uint8_t called, hfn_stack_state *state)
{
    const hfn_judging *j = p->judging;
    uint8_t stack = j->arch->stack_register, known = pops_of(j, target);
    const hfn_slot *slot = known == CANNOT_BE_TOLD ? hfn_prove_slot(p, target) : NULL;

    if (slot && slot->pops_nothing) {
        known = 1;
    } else if (slot && slot->own != UINT64_MAX) {
        known = pops_of(j, slot->own);
    }
    if (known == CANNOT_BE_TOLD) {
        return;
    }
    state->uncertain_calls = called;
    if (state->at[stack] != HFN_STACK_IN_FRAME) {
        state->at[stack] += 4 * (known - 1);
    }
}

void hfn_pops_note(hfn_prover *p, uint8_t called_before, hfn_stack_state *state, bool returns)
{
    hfn_leader *l;

    if (p->reach < state->argument_bytes) {
        p->reach = state->argument_bytes;
    }
    if (!called_before && !state->uncertain_calls && !state->depends_on_calls) {
        return;
    }
    l = hfn_prove_leader(p, p->block);
    l->resets |= called_before > 0 && state->uncertain_calls == 0;
    l->returns |= returns && state->uncertain_calls > 0;
    l->unsettled |= state->depends_on_calls;
    state->depends_on_calls = false;
}

void hfn_pops_lead(hfn_prover *p, uint64_t to, const hfn_stack_state *state)
{
    const hfn_way way = { p->block, to };

    if (!state->uncertain_calls || p->block == UINT64_MAX) {
        return;
    }
    if (!hfn_grow(&p->judging->env, (void **)&p->ways, &p->way_capacity, p->way_count + 1,
                  sizeof way)) {
        p->no_memory = true;
        return;
    }
    p->ways[p->way_count++] = way;
}

bool hfn_pops_are_settled(hfn_prover *p)
{
    bool any = true;

    while (any) {
        any = false;
        for (size_t i = p->way_count; i-- > 0;) {
            const hfn_leader *to = hfn_prove_leader(p, p->ways[i].to);
            hfn_leader *from = hfn_prove_leader(p, p->ways[i].from);
            if (to->returns && !to->resets && !from->returns && !from->resets) {
                any = from->returns = true;
            }
        }
    }
    for (uint32_t i = 0; i < p->capacity; i++) {
        const hfn_leader *l = &p->leaders[i];
        if (l->rva != UINT64_MAX && l->unsettled && (!l->returns || l->resets)) {
            return false;
        }
    }
    return true;
}
