/* SPDX-License-Identifier: MIT */
/*
 * Pieces of functions.  An outliner puts a straight line of instructions that several functions have in common
 * in a function of its own and calls that (LLVM's MachineOutliner, on AArch64 by -Oz, elsewhere if asked: a
 * candidate lies in one basic block, so that no way leads out of its middle).  Such a function works on the stack of
 * whoever calls it, by the stack pointer (not on x86) or by the frame pointer that it finds: what it touches
 * there may be locals, which may not be copied, or its caller's own arguments, which the proof of the caller
 * must see.  Nothing marks it.  So every straight line that touches its caller's frame and shows nothing that no
 * piece has is taken for one: its calls are followed as if it stood in their place, which is right for any
 * function, and it is not timed if its own stack pointer leads it there.
 */
#include "verdicts/prove.h"

enum { IS_NONE = 1, IS_PIECE = 2, LINES_MAX = 8 };

/* The next instruction of the line at rva; false: it does not end as lines do. */
static bool read_next(const hfn_judging *j, const hfn_subject *s, uint64_t rva, hfn_instruction *in)
{
    return rva < s->end && j->arch->decode(s->region->bytes + (rva - s->region->rva), s->end - rva,
                                           rva, j->info.link_base, in);
}

static bool goes_on(const hfn_instruction *in)
{
    return in->flow == HFN_FLOW_NEXT || in->flow == HFN_FLOW_CALL ||
           in->flow == HFN_FLOW_CALL_INDIRECT;
}

static uint8_t look_at(const hfn_judging *j, const hfn_subject *s)
{
    hfn_stack_state state;
    hfn_instruction in = { .flow = HFN_FLOW_NEXT };
    bool touches = false;

    j->arch->begin_stack(&state);
    state.at[j->arch->frame_register] = -2 * (int32_t)j->arch->pointer_bytes; /* a frame record's */
    for (uint64_t at = s->rva; s->region && goes_on(&in); at += in.length) {
        const uint8_t *bytes = s->region->bytes + (at - s->region->rva);
        if (!read_next(j, s, at, &in) || in.flow == HFN_FLOW_JUMP_IF ||
            (in.flow != HFN_FLOW_RETURN && j->arch->is_never_shared(bytes, in.length))) {
            return IS_NONE;
        }
        hfn_stack_outcome answer = j->arch->step_stack(bytes, s->end - at, at, &state);
        touches |= answer == HFN_STACK_TOUCHES_CALLER || answer == HFN_STACK_TOUCHES_RETURN ||
                   state.argument_bytes > 0;
    }
    return touches ? IS_PIECE : IS_NONE;
}

bool hfn_is_piece(const hfn_judging *j, uint32_t subject)
{
    uint8_t known;

    known = __atomic_load_n(&j->pieces[subject], __ATOMIC_RELAXED); /* all threads find the same */
    if (known == 0) {
        known = look_at(j, &j->subjects[subject]);
        __atomic_store_n(&j->pieces[subject], known, __ATOMIC_RELAXED);
    }
    return known == IS_PIECE;
}

static const hfn_subject *piece_at(const hfn_judging *j, uint64_t rva)
{
    uint32_t index = hfn_judging_lower(j, rva);

    return index < j->count && j->subjects[index].rva == rva && hfn_is_piece(j, index)
               ? &j->subjects[index]
               : NULL;
}

/* It jumped on to a function, which returns to our caller: that sees what any call leaves.  What the line has
 * put in registers for it is gone. */
static uint32_t end_by_jump(const hfn_prover *p, hfn_stack_state *state,
                            const hfn_stack_state *before)
{
    uint8_t stack = p->judging->arch->stack_register;

    if (state->at[stack] != before->at[stack]) {
        return HOTFN_REASON_STACK_UNKNOWN;
    }
    for (uint32_t i = 0; i < HFN_STACK_REGISTERS; i++) {
        if (state->at[i] != before->at[i]) {
            state->at[i] = HFN_STACK_UNKNOWN;
        }
    }
    return HOTFN_REASON_NONE;
}

static uint32_t follow(hfn_prover *p, uint64_t target, hfn_stack_state *state, uint32_t left)
{
    const hfn_judging *j = p->judging;
    const hfn_stack_state before = *state;
    const hfn_subject *s = piece_at(j, target);
    hfn_instruction in = { .flow = HFN_FLOW_NEXT };
    uint32_t reason = HOTFN_REASON_NONE;

    if (s && left == 0) {
        return HOTFN_REASON_STACK_UNKNOWN;
    }
    for (uint64_t at = target; s && reason == HOTFN_REASON_NONE; at += in.length) {
        if (!read_next(j, s, at, &in)) {
            return HOTFN_REASON_STACK_UNKNOWN;
        }
        if (in.flow == HFN_FLOW_RETURN || in.flow == HFN_FLOW_STOP) {
            break;
        }
        reason = hfn_prove_reason(
            j->arch->step_stack(s->region->bytes + (at - s->region->rva), s->end - at, at, state));
        hfn_pops_note(p, state->uncertain_calls, state, false);
        if (reason == HOTFN_REASON_NONE && in.flow == HFN_FLOW_CALL) {
            reason = follow(p, in.target, state, left - 1);
        }
        if (reason != HOTFN_REASON_NONE || goes_on(&in)) {
            continue;
        }
        return in.flow == HFN_FLOW_JUMP && piece_at(j, in.target)
                   ? follow(p, in.target, state, left - 1)
                   : end_by_jump(p, state, &before);
    }
    return reason;
}

uint32_t hfn_prove_piece(hfn_prover *p, uint64_t target, hfn_stack_state *state)
{
    return follow(p, target, state, LINES_MAX);
}
