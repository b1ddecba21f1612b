/* SPDX-License-Identifier: MIT */
/*
 * Outlined functions.  LLVM's MachineOutliner moves straight lines of instructions that several
 * functions have in common into a function of its own and replaces them by calls (on AArch64 with
 * -Oz, elsewhere on request).  Such a function uses the stack of its caller, through the stack
 * pointer or the frame pointer, so what it accesses may be its caller's locals, which must not be
 * copied, or its caller's arguments, which the proof of the caller must include.  These functions
 * have no mark.  Every straight-line function that accesses its caller's frame, and contains no
 * instruction that outlined code cannot contain, is therefore treated as outlined: calls to it are
 * followed as if it were inlined, which is correct for any function, and it is not timed if it
 * accesses stack arguments itself.
 */
#include "verdicts/prove.h"

enum { NOT_OUTLINED = 1, IS_OUTLINED = 2, LINES_MAX = 8 };

/* Decode the instruction at rva; false if the line ends without a return or a jump. */
static bool read_next(const hfn_analysis *a, const hfn_body *body, uint64_t rva,
                      hfn_instruction *in)
{
    return rva < body->end && a->arch->decode(body->region->bytes + (rva - body->region->rva),
                                              body->end - rva, rva, a->info.link_base, in);
}

static bool falls_through(const hfn_instruction *in)
{
    return in->flow == HFN_FLOW_NEXT || in->flow == HFN_FLOW_CALL ||
           in->flow == HFN_FLOW_CALL_INDIRECT;
}

static uint8_t classify_function(const hfn_analysis *a, const hfn_body *body)
{
    hfn_stack_state state;
    hfn_instruction in = { .flow = HFN_FLOW_NEXT };
    bool touches_caller = false;

    a->arch->begin_stack(&state);
    state.at[a->arch->frame_register] =
        -2 * (int32_t)a->arch->pointer_bytes; /* as after a prologue */
    for (uint64_t at = body->rva; body->region && falls_through(&in); at += in.length) {
        const uint8_t *bytes = body->region->bytes + (at - body->region->rva);
        if (!read_next(a, body, at, &in) || in.flow == HFN_FLOW_JUMP_IF ||
            (in.flow != HFN_FLOW_RETURN && a->arch->is_never_shared(bytes, in.length))) {
            return NOT_OUTLINED;
        }
        hfn_stack_outcome outcome = a->arch->step_stack(bytes, body->end - at, at, &state);
        touches_caller |= outcome == HFN_STACK_TOUCHES_CALLER ||
                          outcome == HFN_STACK_TOUCHES_RETURN || state.argument_bytes > 0;
    }
    return touches_caller ? IS_OUTLINED : NOT_OUTLINED;
}

bool hfn_is_outlined(const hfn_analysis *a, uint32_t function)
{
    uint8_t known;

    known = __atomic_load_n(&a->outlined[function],
                            __ATOMIC_RELAXED); /* all threads compute the same value */
    if (known == 0) {
        known = classify_function(a, &a->bodies[function]);
        __atomic_store_n(&a->outlined[function], known, __ATOMIC_RELAXED);
    }
    return known == IS_OUTLINED;
}

static const hfn_body *find_outlined(const hfn_analysis *a, uint64_t rva)
{
    uint32_t index = hfn_analysis_find_body(a, rva);

    return index < a->count && a->bodies[index].rva == rva && hfn_is_outlined(a, index)
               ? &a->bodies[index]
               : NULL;
}

/* Follow a tail jump from the end of the line to a function, which returns to the caller of the
 * line. The stack pointer must be that of the line's start; registers that the line set become
 * unknown. */
static uint32_t finish_tail_jump(const hfn_prover *p, hfn_stack_state *state,
                                 const hfn_stack_state *before)
{
    uint8_t stack = p->analysis->arch->stack_register;

    if (state->at[stack] != before->at[stack]) {
        return HOTFN_REASON_STACK_UNKNOWN;
    }
    for (uint32_t i = 0; i < HFN_STACK_REGISTERS; i++) {
        state->at[i] = hfn_stack_join(state->at[i], before->at[i]);
    }
    return HOTFN_REASON_NONE;
}

/* Follow a line and the lines that it calls or jumps to, nested at most lines_left deep. */
static uint32_t follow_line(hfn_prover *p, uint64_t target, hfn_stack_state *state,
                            uint32_t lines_left)
{
    const hfn_analysis *a = p->analysis;
    const hfn_stack_state before = *state;
    const hfn_body *body = find_outlined(a, target);
    hfn_instruction in = { .flow = HFN_FLOW_NEXT };
    uint32_t reason = HOTFN_REASON_NONE;

    if (body && lines_left == 0) {
        return HOTFN_REASON_STACK_UNKNOWN;
    }
    for (uint64_t at = target; body && reason == HOTFN_REASON_NONE; at += in.length) {
        if (!read_next(a, body, at, &in)) {
            return HOTFN_REASON_STACK_UNKNOWN;
        }
        if (in.flow == HFN_FLOW_RETURN || in.flow == HFN_FLOW_STOP) {
            break;
        }
        reason = hfn_prove_reason(a->arch->step_stack(
            body->region->bytes + (at - body->region->rva), body->end - at, at, state));
        hfn_pops_record_step(p, state->uncertain_calls, state, false);
        if (reason == HOTFN_REASON_NONE && in.flow == HFN_FLOW_CALL) {
            reason = follow_line(p, in.target, state, lines_left - 1);
        }
        if (reason != HOTFN_REASON_NONE || falls_through(&in)) {
            continue;
        }
        return in.flow == HFN_FLOW_JUMP && find_outlined(a, in.target)
                   ? follow_line(p, in.target, state, lines_left - 1)
                   : finish_tail_jump(p, state, &before);
    }
    return reason;
}

uint32_t hfn_prove_outlined(hfn_prover *p, uint64_t target, hfn_stack_state *state)
{
    return follow_line(p, target, state, LINES_MAX);
}
