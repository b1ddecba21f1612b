/* SPDX-License-Identifier: MIT */
/*
 * The algorithm of a proof (prove.h).
 *
 *   1. The entry is the first leader, with the stack state of a call.
 *   2. A block is followed from its leader, instruction by instruction.  The arch updates the stack
 *      state and reports forbidden accesses, which end the proof.  Each branch target becomes a
 *      leader (prove_jumps.c).  If two paths to a leader disagree on the depth of the stack, the
 *      proof ends, unless one of them contains a call, which may not return: that path is dropped
 *      (prove_leaders.c).  A leader whose state changed is followed again.
 *   3. When no leader is left and there was an indirect jump, every byte of the function that a
 *      jump or a table marks is treated as one of its targets.
 *   4. When step 3 adds nothing, exceptions are followed from the calls found so far to their
 *      landing pads.
 *   5. Repeat until nothing new is found.
 */
#include "verdicts/prove.h"

#include "base/compiler.h"
#include "base/search.h"

#include <string.h>

/* ---- Records of the proof. */

static void record_call(hfn_prover *p, uint64_t at, const hfn_stack_state *state)
{
    const hfn_call_state call = { at, *state };

    hfn_prove_append(p, (void **)&p->calls, &p->call_count, &p->call_capacity, &call, sizeof call);
}

/* Windows: a fault that is caught keeps the registers that a call keeps.  False if the stack is not
 * that of a call. */
static bool record_fault(hfn_prover *p, uint64_t at, const hfn_stack_state *state)
{
    static const uint8_t call_rax[] = { 0xff, 0xd0 };
    const hfn_analysis *a = p->analysis;
    hfn_stack_state after = *state;
    uint64_t first;

    if (a->home_bytes == 0 || hfn_fixed_reason(a, at, at + 1, &first) == HOTFN_REASON_NONE) {
        return true;
    }
    if (hfn_prove_reason(a->arch->step_stack(call_rax, sizeof call_rax, at, &after)) !=
        HOTFN_REASON_NONE) {
        return false;
    }
    record_call(p, at, &after);
    return true;
}

/* End of the function or fragment that contains rva. */
static uint64_t end_of_part(const hfn_prover *p, uint64_t rva)
{
    const hfn_analysis *a = p->analysis;
    uint32_t next = hfn_analysis_find_body(a, rva + 1);

    if (next > 0 && rva < a->bodies[next - 1].end) {
        return a->bodies[next - 1].end;
    }
    return next < a->count ? a->bodies[next].rva : UINT64_MAX;
}

static void record_part(hfn_prover *p, uint64_t rva)
{
    uint32_t index = hfn_analysis_find_body(p->analysis, rva + 1);

    if (index == 0 || rva >= p->analysis->bodies[index - 1].end) {
        return;
    }
    index--;
    for (size_t i = 0; i < p->part_count; i++) {
        if (p->parts[i] == index) {
            return;
        }
    }
    hfn_prove_append(p, (void **)&p->parts, &p->part_count, &p->part_capacity, &index,
                     sizeof index);
}

/* Whether a call at `at` targets an instruction inside the function, or inside code that belongs to
 * no function: to read its own address, or in a retpoline, which replaces the return address. */
static bool is_inside(const hfn_prover *p, uint64_t at, uint64_t target)
{
    const hfn_analysis *a = p->analysis;

    if (hfn_analysis_find_around(a, at) == HFN_NO_FUNCTION &&
        hfn_analysis_find_around(a, target) == HFN_NO_FUNCTION) {
        return true;
    }
    for (size_t i = 0; i < p->part_count; i++) {
        if (target > a->bodies[p->parts[i]].rva && target < a->bodies[p->parts[i]].end) {
            return target != p->items[p->parts[i]].site_rva;
        }
    }
    return false;
}

/* ---- An instruction. */

uint32_t hfn_prove_reason(hfn_stack_outcome answer)
{
    switch (answer) {
    case HFN_STACK_OK: return HOTFN_REASON_NONE;
    case HFN_STACK_TOUCHES_CALLER: return HOTFN_REASON_STACK_ARGUMENTS;
    case HFN_STACK_TOUCHES_RETURN: return HOTFN_REASON_RETURN_ADDRESS;
    case HFN_STACK_POPS_UNKNOWN: return HOTFN_REASON_RETURN_POPS;
    default: return HOTFN_REASON_STACK_UNKNOWN;
    }
}

/* i386: the register that the called code sets to its return address and nothing else; or
 * HFN_NO_REGISTER. */
static uint8_t pc_register(const hfn_prover *p, const hfn_instruction *in)
{
    const hfn_analysis *a = p->analysis;
    const hfn_region *region = a->arch->pc_register && in->flow == HFN_FLOW_CALL
                                   ? hfn_code_region(&a->code, in->target)
                                   : NULL;

    return region ? a->arch->pc_register(region->bytes + (in->target - region->rva),
                                         region->end - in->target)
                  : HFN_NO_REGISTER;
}

/* i386: call +0, which the arch handles as a push. */
static bool is_push_of_pc(const hfn_prover *p, uint64_t at, const hfn_instruction *in)
{
    return p->analysis->arch->pc_register && in->flow == HFN_FLOW_CALL &&
           in->target == at + in->length;
}

/* A callee leaves the stack as it was, unless it is outlined code of its caller. */
static uint32_t step_call(hfn_prover *p, uint64_t at, uint64_t target, hfn_stack_state *state)
{
    bool inside = is_inside(p, at, target);

    record_call(p, at, state);
    if (inside) {
        return HOTFN_REASON_STACK_UNKNOWN;
    }
    return p->analysis->outlined ? hfn_prove_outlined(p, target, state) : HOTFN_REASON_NONE;
}

/* The kernel of Windows x64 reads a call's further arguments above the home space, where a timed
 * function finds its copies only if it reads them itself. */
static bool may_use_stack(const hfn_prover *p, const hfn_block *b, const hfn_instruction *in)
{
    const hfn_straight_line line = hfn_prove_get_line(p, b);

    return (p->analysis->home_bytes > 0 && in->is_system) ||
           p->analysis->arch->may_switch_stack(&line);
}

/* Follow a conditional jump; afterwards the state is that of the next instruction. */
static uint32_t step_branch(hfn_prover *p, const hfn_block *b, uint64_t at, uint64_t target,
                            hfn_stack_state *state)
{
    const hfn_arch *arch = p->analysis->arch;
    const uint8_t *bytes = b->region->bytes + (at - b->region->rva);
    hfn_stack_state taken = *state;

    if (arch->apply_condition) {
        arch->apply_condition(bytes, b->region->end - at, true, &taken);
        arch->apply_condition(bytes, b->region->end - at, false, state);
    }
    return hfn_prove_jump(p, target, &taken);
}

typedef enum step_result { BLOCK_CONTINUES, BLOCK_ENDS } step_result;

/* Apply one instruction and add its edges except the one to the next instruction; *reason: why
 * the proof ends. */
static step_result step_instruction(hfn_prover *p, const hfn_block *b, uint64_t at,
                                    const hfn_instruction *in, hfn_stack_state *state,
                                    uint32_t *reason)
{
    const uint8_t *bytes = b->region->bytes + (at - b->region->rva);
    uint8_t called = state->uncertain_calls, made = pc_register(p, in);

    if (made != HFN_NO_REGISTER) {
        state->at[made] = HFN_STACK_UNRELATED;
        state->below[made] = 0;
        state->base_offsets &= ~(1u << made);
        *reason = HOTFN_REASON_NONE;
        return BLOCK_CONTINUES;
    }
    if (!record_fault(p, at, state)) {
        *reason = HOTFN_REASON_STACK_UNKNOWN;
        return BLOCK_ENDS;
    }
    *reason =
        hfn_prove_reason(p->analysis->arch->step_stack(bytes, b->region->end - at, at, state));
    if (*reason != HOTFN_REASON_NONE) {
        return BLOCK_ENDS;
    }
    if ((in->flow == HFN_FLOW_NEXT || in->flow == HFN_FLOW_CALL_INDIRECT) &&
        may_use_stack(p, b, in)) {
        *reason = HOTFN_REASON_SYSTEM_CALL;
        return BLOCK_ENDS;
    }
    p->frame_address |= state->frame_address;
    p->home_stores |= state->home_stores;
    p->home_addresses |= state->home_addresses;
    if (is_push_of_pc(p, at, in)) {
        return BLOCK_CONTINUES;
    }
    if (in->flow == HFN_FLOW_CALL && state->uncertain_calls) {
        hfn_pops_apply_call(p, in->target, called, state);
    }
    hfn_pops_record_step(p, called, state, in->flow == HFN_FLOW_RETURN);
    switch (in->flow) {
    case HFN_FLOW_CALL: *reason = step_call(p, at, in->target, state); return BLOCK_CONTINUES;
    case HFN_FLOW_CALL_INDIRECT: record_call(p, at, state); return BLOCK_CONTINUES;
    case HFN_FLOW_JUMP: *reason = hfn_prove_jump(p, in->target, state); return BLOCK_ENDS;
    case HFN_FLOW_JUMP_IF:
        *reason = step_branch(p, b, at, in->target, state);
        return BLOCK_CONTINUES;
    case HFN_FLOW_JUMP_INDIRECT:
        *reason = hfn_prove_indirect_jump(p, b, in, state);
        return BLOCK_ENDS;
    case HFN_FLOW_RETURN: *reason = hfn_prove_return(p, state->popped_bytes); return BLOCK_ENDS;
    default: return BLOCK_CONTINUES;
    }
}

/* ---- A block. */

/* The position in a block. */
typedef struct reading {
    hfn_block block;
    uint64_t at, end; /* next instruction; end of its function or fragment */
    hfn_stack_state state;
    bool weak;        /* the path contains a call, which may not return  */
    bool behind_call; /* only padding lies between it and a call */
} reading;

/* Whether a jump targets the next instruction, so that another block begins there. */
static bool begins_next_block(const reading *r)
{
    return r->at != r->block.begin && r->at < r->end && r->at < r->block.region->end &&
           (hfn_region_marks(r->block.region, r->at) & HFN_MARK_JUMPED);
}

static bool decode_next(const hfn_analysis *a, const reading *r, hfn_instruction *in)
{
    const hfn_region *region = r->block.region;

    return r->at < region->end &&
           a->arch->decode(region->bytes + (r->at - region->rva), region->end - r->at, r->at,
                           a->info.link_base, in);
}

/* Append a start; a full list drops its older half. */
static void append_start(hfn_block *b, uint64_t at)
{
    if (b->count == HFN_BLOCK_STARTS) {
        memmove(b->starts, b->starts + HFN_BLOCK_STARTS / 2,
                HFN_BLOCK_STARTS / 2 * sizeof *b->starts);
        b->count = HFN_BLOCK_STARTS / 2;
    }
    b->starts[b->count++] = (uint32_t)(at - b->begin);
}

static bool is_real_call(const hfn_prover *p, uint64_t at, const hfn_instruction *in)
{
    return in->flow == HFN_FLOW_CALL_INDIRECT ||
           (in->flow == HFN_FLOW_CALL && !is_push_of_pc(p, at, in) &&
            pc_register(p, in) == HFN_NO_REGISTER);
}

static void advance_reading(const hfn_prover *p, reading *r, const hfn_instruction *in)
{
    if (is_real_call(p, r->at, in)) {
        r->weak = r->behind_call = true;
    } else {
        r->behind_call = r->behind_call && in->is_padding;
    }
    r->at += in->length;
}

static uint32_t read_block(hfn_prover *p, const hfn_leader *from)
{
    reading r = { .block = { .region = hfn_code_region(&p->analysis->code, from->rva),
                             .begin = from->rva },
                  .at = from->rva,
                  .end = end_of_part(p, from->rva),
                  .state = from->state,
                  .weak = from->weak };
    hfn_instruction in;
    uint32_t reason;

    if (!r.block.region) {
        return HOTFN_REASON_STACK_UNKNOWN;
    }
    record_part(p, r.at);
    p->block = r.at;
    for (;;) {
        if (begins_next_block(&r)) {
            return hfn_prove_add_edge(p, r.at, &r.state, r.weak);
        }
        if (!decode_next(p->analysis, &r, &in)) {
            return r.behind_call ? HOTFN_REASON_NONE : HOTFN_REASON_STACK_UNKNOWN;
        }
        if (in.flow == HFN_FLOW_STOP) {
            return HOTFN_REASON_NONE;
        }
        append_start(&r.block, r.at);
        p->branch_field = in.length > 4 ? r.at + in.length - 4 : 0;
        if (step_instruction(p, &r.block, r.at, &in, &r.state, &reason) == BLOCK_ENDS ||
            reason != HOTFN_REASON_NONE) {
            return reason;
        }
        advance_reading(p, &r, &in);
        p->branch_field = 0;
        if (r.at >= r.end) {
            return r.behind_call ? HOTFN_REASON_NONE : hfn_prove_jump(p, r.at, &r.state);
        }
        if (in.flow == HFN_FLOW_JUMP_IF &&
            r.state.uncertain_calls) { /* the two paths may reach different returns */
            return hfn_prove_add_edge(p, r.at, &r.state, r.weak);
        }
    }
}

/* Follow all queued leaders.  This function and those below return HOTFN_REASON_*. */
static uint32_t read_queued(hfn_prover *p)
{
    while (p->queue_count > 0) {
        hfn_leader *l = &p->leaders[p->queue[--p->queue_count]];
        const hfn_leader copy = *l; /* the table may grow */
        uint32_t reason;

        l->queued = false;
        reason = read_block(p, &copy);
        if (p->no_memory) {
            return HOTFN_REASON_STACK_UNKNOWN;
        }
        if (reason != HOTFN_REASON_NONE) {
            return reason;
        }
    }
    return HOTFN_REASON_NONE;
}

/* ---- Targets of indirect jumps. */

/* Treat rva as a target of the indirect jump. */
static uint32_t follow_case(hfn_prover *p, uint64_t rva, bool *any)
{
    p->case_seen = true;
    if (hfn_prove_find_leader(p, rva)->rva == rva) {
        return HOTFN_REASON_NONE;
    }
    *any = true;
    p->block = p->dispatch_block;
    return hfn_prove_add_edge(p, rva, &p->dispatch_state, true);
}

/* Treat all marked places inside a function or fragment as targets of the indirect jump. */
static uint32_t follow_cases_inside(hfn_prover *p, const hfn_body *part, bool *any)
{
    uint32_t reason = HOTFN_REASON_NONE;

    for (uint64_t at = part->rva + 1; at < part->end && reason == HOTFN_REASON_NONE; at++) {
        if (hfn_region_marks(part->region, at) & (HFN_MARK_JUMPED | HFN_MARK_TAKEN)) {
            reason = follow_case(p, at, any);
        }
    }
    return reason;
}

/* Follow a table entry that targets another function, as a tail jump. */
static uint32_t follow_entry(hfn_prover *p, uint64_t rva, uint32_t index, bool *any)
{
    uint32_t reason;

    p->case_seen = true;
    for (size_t i = 0; i < p->tail_count; i++) {
        if (p->tails[i].to == index) {
            return HOTFN_REASON_NONE;
        }
    }
    p->block = p->dispatch_block;
    p->branch_field = 0;
    reason = hfn_prove_jump(p, rva, &p->dispatch_state);
    *any |= p->queue_count > 0;
    return reason;
}

/* Follow the cross-function jumps of the part's tables.  A target in the middle of another function
 * is ignored: the table was read too far. */
static uint32_t follow_cases_outside(hfn_prover *p, uint32_t part, bool *any)
{
    const hfn_analysis *a = p->analysis;
    uint32_t reason = HOTFN_REASON_NONE;
    size_t i = hfn_count_below_u32(a->cross_jumps, a->cross_jump_count, sizeof *a->cross_jumps,
                                   offsetof(hfn_cross_jump, function), part);

    for (; i < a->cross_jump_count && a->cross_jumps[i].function == part && !reason; i++) {
        uint64_t target = a->cross_jumps[i].target;
        uint32_t next = hfn_analysis_find_body(a, target + 1);
        if (next == 0 || target >= a->bodies[next - 1].end ||
            p->items[next - 1].pub.verdict == HOTFN_VERDICT_FRAGMENT) {
            reason = follow_case(p, target, any);
        } else if (target == a->bodies[next - 1].rva || target == p->items[next - 1].site_rva) {
            reason = follow_entry(p, target, next - 1, any);
        }
    }
    return reason;
}

static uint32_t follow_dispatch(hfn_prover *p, bool *any)
{
    uint32_t reason = HOTFN_REASON_NONE;

    for (size_t i = 0; i < p->part_count && reason == HOTFN_REASON_NONE; i++) {
        uint32_t part = p->parts[i];
        if (part != p->function && p->items[part].pub.verdict != HOTFN_VERDICT_FRAGMENT) {
            continue;
        }
        reason = follow_cases_inside(p, &p->analysis->bodies[part], any);
        if (reason == HOTFN_REASON_NONE) {
            reason = follow_cases_outside(p, part, any);
        }
    }
    if (reason == HOTFN_REASON_NONE && !p->case_seen) {
        return HOTFN_REASON_STACK_UNKNOWN; /* no target is known */
    }
    return reason;
}

/* ---- The whole proof. */

static void begin_proof(hfn_prover *p, uint32_t function)
{
    const hfn_body *body = &p->analysis->bodies[function];

    hfn_prove_clear_leaders(p);
    p->queue_count = p->call_count = p->tail_count = p->part_count = p->edge_count = 0;
    p->object_count = 0;
    p->function = function;
    p->rva = body->rva;
    p->end = body->end;
    p->dispatches = p->case_seen = p->loops = false;
    p->block = UINT64_MAX;
    p->reach = p->frame_address = 0;
    p->stored_arguments = 0;
    p->home_stores = p->home_addresses = 0;
    p->pops = -1;
}

/* One round: queued leaders, then targets of indirect jumps; exceptions only when those add
 * nothing. */
static uint32_t follow_all(hfn_prover *p, bool *any)
{
    uint32_t reason = read_queued(p);

    *any = false;
    if (reason == HOTFN_REASON_NONE && p->dispatches) {
        reason = follow_dispatch(p, any);
    }
    p->block = UINT64_MAX;
    if (reason == HOTFN_REASON_NONE && !*any) {
        reason = hfn_prove_landing_pads(p, any);
    }
    return reason;
}

/* An address in the home space may be a va_list, through which callees read the caller's frame.  A
 * function with variable arguments stores the words that they may be in, also the last one. */
static bool may_make_va_list(const hfn_prover *p)
{
    uint32_t last = p->analysis->home_bytes / p->analysis->arch->pointer_bytes - 1u;

    return p->home_addresses != 0 && (p->home_stores >> last & 1);
}

uint32_t hfn_prove_function(hfn_prover *p, uint32_t function)
{
    hfn_stack_state entry;
    uint32_t reason;
    bool any = true;

    begin_proof(p, function);
    p->analysis->arch->begin_stack(&entry);
    entry.home_bytes = p->analysis->home_bytes;
    reason = hfn_prove_add_edge(p, p->rva, &entry, false);
    while (reason == HOTFN_REASON_NONE && any) {
        reason = follow_all(p, &any);
    }
    if (reason == HOTFN_REASON_NONE && !hfn_pops_are_consistent(p)) {
        return HOTFN_REASON_STACK_UNKNOWN;
    }
    if (reason == HOTFN_REASON_NONE && (!hfn_prove_indexes_objects(p) || may_make_va_list(p))) {
        return HOTFN_REASON_STACK_ARGUMENTS;
    }
    if (reason == HOTFN_REASON_NONE && p->stored_arguments >> HFN_STORED_ARGUMENTS_MAX) {
        return HOTFN_REASON_STACK_ARGUMENTS; /* a stub writes only the first words back */
    }
    /* Calls run with or without the additional frame, so comparing the addresses of their variables
     * would give other results. */
    if (reason == HOTFN_REASON_NONE &&
        p->frame_address == (HFN_FRAME_ADDRESS_STORED | HFN_FRAME_ADDRESS_COMPARED)) {
        return HOTFN_REASON_OWN_ADDRESS;
    }
    return reason;
}
