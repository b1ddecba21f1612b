/* SPDX-License-Identifier: MIT */
/*
 * How much a callee takes from the stack when it returns is its own affair on i386: `ret n` of a stdcall,
 * or of a function that returns a struct.  The proof believes that it takes nothing.  If it does take
 * some, the stack pointer is higher than believed from there on, and at a return that is reached by it alone
 * it is not where the proof says: so each return that fits shows that all calls on the ways to it took
 * nothing.  What remains are places that lead to no such return (`abort` follows, or the frame pointer
 * sets the stack pointer anew): if one of them touches something close to the return address by the stack
 * pointer, the proof ends.
 */
#include "verdicts/prove.h"

void hfn_pops_note(hfn_prover *p, bool called_before, hfn_stack_state *state, bool returns)
{
    hfn_leader *l;

    if (p->reach < state->reach)
        p->reach = state->reach;
    if (!called_before && !state->called && !state->unsettled)
        return;
    l = hfn_prove_place(p, p->block);
    l->resets |= called_before && !state->called;
    l->returns |= returns && state->called;
    l->unsettled |= state->unsettled;
    state->unsettled = false;
}

void hfn_pops_lead(hfn_prover *p, uint64_t to, const hfn_stack_state *state)
{
    const hfn_way way = { p->block, to };

    if (!state->called || p->block == UINT64_MAX)
        return;
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
            const hfn_leader *to = hfn_prove_place(p, p->ways[i].to);
            hfn_leader *from = hfn_prove_place(p, p->ways[i].from);
            if (to->returns && !to->resets && !from->returns && !from->resets)
                any = from->returns = true;
        }
    }
    for (uint32_t i = 0; i < p->capacity; i++) {
        const hfn_leader *l = &p->leaders[i];
        if (l->rva != UINT64_MAX && l->unsettled && (!l->returns || l->resets))
            return false;
    }
    return true;
}
