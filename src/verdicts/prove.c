/* SPDX-License-Identifier: MIT */
/*
 * The walk of a proof (prove.h).  From the entry on code is followed block by block:
 *
 *   1. The entry is the first leader: a place to be read, with the stack as it is when a function is called.
 *   2. A block is read from its leader on, instruction by instruction.  arch says what each does to the stack, and
 *      whether it touches what it may not, which ends the proof.  Where a branch leads there is a leader
 *      (prove_jumps.c); two ways to it that differ in how deep the stack is end the proof, but one that comes from
 *      behind a call, which may never return, gives in (prove_leaders.c).  A leader of which something new is
 *      known is read again.
 *   3. When all are read and there was an indirect jump: every place in the function that a jump or a table
 *      marks is taken for one of its targets.
 *   4. When that leads to nothing new: exceptions lead from the calls that were seen to their landing pads.
 *   5. Until nothing new is found.
 */
#include "verdicts/prove.h"

#include "base/compiler.h"
#include "base/search.h"

#include <string.h>

/* ---- What the walk keeps. */

static void note_call(hfn_prover *p, uint64_t at, const hfn_stack_state *state)
{
    const hfn_arch *arch = p->judging->arch;
    const hfn_call_state call = { at, state->at[arch->stack_register],
                                  state->at[arch->frame_register], state->at[arch->return_place],
                                  state->uncertain_calls };

    hfn_prove_append(p, (void **)&p->calls, &p->call_count, &p->call_capacity, &call, sizeof call);
}

/* What lies behind the last byte of a function or a part is none of its own. */
static uint64_t end_of_part(const hfn_prover *p, uint64_t rva)
{
    const hfn_judging *j = p->judging;
    uint32_t next = hfn_judging_lower(j, rva + 1);

    if (next > 0 && rva < j->subjects[next - 1].end) {
        return j->subjects[next - 1].end;
    }
    return next < j->count ? j->subjects[next].rva : UINT64_MAX;
}

static void note_part(hfn_prover *p, uint64_t rva)
{
    uint32_t index = hfn_judging_lower(p->judging, rva + 1);

    if (index == 0 || rva >= p->judging->subjects[index - 1].end) {
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

/* A call to a place in the function: it wants its own address, or is a retpoline's, whose callee puts
 * another return address in the place of this one. */
static bool is_inside(const hfn_prover *p, uint64_t target)
{
    const hfn_judging *j = p->judging;

    for (size_t i = 0; i < p->part_count; i++) {
        if (target > j->subjects[p->parts[i]].rva && target < j->subjects[p->parts[i]].end) {
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

/* i386: a call of code that does nothing but give back its return address in a register; or
 * HFN_NO_REGISTER. */
static uint8_t pc_register(const hfn_prover *p, const hfn_instruction *in)
{
    const hfn_judging *j = p->judging;
    const hfn_region *region = j->arch->pc_register && in->flow == HFN_FLOW_CALL
                                   ? hfn_code_region(&j->code, in->target)
                                   : NULL;

    return region ? j->arch->pc_register(region->bytes + (in->target - region->rva),
                                         region->end - in->target)
                  : HFN_NO_REGISTER;
}

/* i386: call +0, which arch follows as a push. */
static bool is_push_of_place(const hfn_prover *p, uint64_t at, const hfn_instruction *in)
{
    return p->judging->arch->pc_register && in->flow == HFN_FLOW_CALL &&
           in->target == at + in->length;
}

/* What it leaves on the stack is what it found there, but where it is a piece of its caller's. */
static uint32_t step_call(hfn_prover *p, uint64_t at, uint64_t target, hfn_stack_state *state)
{
    bool inside = is_inside(p, target);

    note_call(p, at, state);
    if (inside) {
        return HOTFN_REASON_STACK_UNKNOWN;
    }
    return p->judging->pieces ? hfn_prove_piece(p, target, state) : HOTFN_REASON_NONE;
}

typedef enum outcome { GOES_ON, ENDS } outcome;

/* One instruction, and where it leads beside the next one; *reason is set where the proof ends. */
static outcome step(hfn_prover *p, const hfn_block *b, uint64_t at, const hfn_instruction *in,
                    hfn_stack_state *state, uint32_t *reason)
{
    const uint8_t *bytes = b->region->bytes + (at - b->region->rva);
    uint8_t called = state->uncertain_calls, made = pc_register(p, in);

    if (made != HFN_NO_REGISTER) {
        state->at[made] = HFN_STACK_UNKNOWN;
        *reason = HOTFN_REASON_NONE;
        return GOES_ON;
    }
    *reason = hfn_prove_reason(p->judging->arch->step_stack(bytes, b->region->end - at, at, state));
    if (*reason != HOTFN_REASON_NONE) {
        return ENDS;
    }
    p->own_address |= state->frame_address;
    if (is_push_of_place(p, at, in)) {
        return GOES_ON;
    }
    if (in->flow == HFN_FLOW_CALL && state->uncertain_calls) {
        hfn_pops_call(p, in->target, called, state);
    }
    hfn_pops_note(p, called, state, in->flow == HFN_FLOW_RETURN);
    switch (in->flow) {
    case HFN_FLOW_CALL: *reason = step_call(p, at, in->target, state); return GOES_ON;
    case HFN_FLOW_CALL_INDIRECT: note_call(p, at, state); return GOES_ON;
    case HFN_FLOW_JUMP: *reason = hfn_prove_jump(p, in->target, state); return ENDS;
    case HFN_FLOW_JUMP_IF: *reason = hfn_prove_jump(p, in->target, state); return GOES_ON;
    case HFN_FLOW_JUMP_INDIRECT: *reason = hfn_prove_indirect_jump(p, b, in, state); return ENDS;
    case HFN_FLOW_RETURN: *reason = hfn_prove_return(p, state->popped_bytes); return ENDS;
    default: return GOES_ON;
    }
}

/* ---- A block. */

/* What is known between two of its instructions. */
typedef struct reading {
    hfn_block block;
    uint64_t at, end; /* the next instruction; of the function or the part that it stands in */
    hfn_stack_state state;
    bool weak;        /* a call was met on the way here, which may not return */
    bool behind_call; /* it was the latest instruction, but for padding       */
} reading;

/* Others lead here too. */
static bool begins_next_block(const reading *r)
{
    return r->at != r->block.begin && r->at < r->end && r->at < r->block.region->end &&
           (hfn_region_marks(r->block.region, r->at) & HFN_MARK_JUMPED);
}

static bool decode_next(const hfn_judging *j, const reading *r, hfn_instruction *in)
{
    const hfn_region *region = r->block.region;

    return r->at < region->end &&
           j->arch->decode(region->bytes + (r->at - region->rva), region->end - r->at, r->at,
                           j->info.link_base, in);
}

/* The older half of what is full goes. */
static void keep_start(hfn_block *b, uint64_t at)
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
           (in->flow == HFN_FLOW_CALL && !is_push_of_place(p, at, in) &&
            pc_register(p, in) == HFN_NO_REGISTER);
}

static void pass(const hfn_prover *p, reading *r, const hfn_instruction *in)
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
    reading r = { .block = { .region = hfn_code_region(&p->judging->code, from->rva),
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
    note_part(p, r.at);
    p->block = r.at;
    for (;;) {
        if (begins_next_block(&r)) {
            return hfn_prove_leads(p, r.at, &r.state, r.weak);
        }
        if (!decode_next(p->judging, &r, &in)) {
            return r.behind_call ? HOTFN_REASON_NONE : HOTFN_REASON_STACK_UNKNOWN;
        }
        if (in.flow == HFN_FLOW_STOP) {
            return HOTFN_REASON_NONE;
        }
        keep_start(&r.block, r.at);
        p->branch_field = in.length > 4 ? r.at + in.length - 4 : 0;
        if (step(p, &r.block, r.at, &in, &r.state, &reason) == ENDS ||
            reason != HOTFN_REASON_NONE) {
            return reason;
        }
        pass(p, &r, &in);
        p->branch_field = 0;
        if (r.at >= r.end) {
            return r.behind_call ? HOTFN_REASON_NONE : hfn_prove_jump(p, r.at, &r.state);
        }
        if (in.flow == HFN_FLOW_JUMP_IF &&
            r.state.uncertain_calls) { /* it may lead to a return, what follows not */
            return hfn_prove_leads(p, r.at, &r.state, r.weak);
        }
    }
}

/* HOTFN_REASON_*, as all that follow. */
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

/* ---- Where indirect jumps lead. */

/* A place not read yet may be the indirect jump's. */
static uint32_t follow_case(hfn_prover *p, uint64_t rva, bool *any)
{
    p->case_seen = true;
    if (hfn_prove_leader(p, rva)->rva == rva) {
        return HOTFN_REASON_NONE;
    }
    *any = true;
    p->block = p->dispatch_block;
    return hfn_prove_leads(p, rva, &p->dispatch_state, true);
}

/* Every place in a part that something leads to ... */
static uint32_t follow_cases_inside(hfn_prover *p, const hfn_subject *part, bool *any)
{
    uint32_t reason = HOTFN_REASON_NONE;

    for (uint64_t at = part->rva + 1; at < part->end && reason == HOTFN_REASON_NONE; at++) {
        if (hfn_region_marks(part->region, at) & (HFN_MARK_JUMPED | HFN_MARK_TAKEN)) {
            reason = follow_case(p, at, any);
        }
    }
    return reason;
}

/* A table's entry that is another function's: the jump is a call's end. */
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

/* ... and where its tables lead outside of it.  What lies in the middle of another function is none of their
 * entries: a table was read too far. */
static uint32_t follow_cases_outside(hfn_prover *p, uint32_t part, bool *any)
{
    const hfn_judging *j = p->judging;
    uint32_t reason = HOTFN_REASON_NONE;
    size_t i = hfn_count_below_u32(j->far_cases, j->far_case_count, sizeof *j->far_cases,
                                   offsetof(hfn_far_case, subject), part);

    for (; i < j->far_case_count && j->far_cases[i].subject == part && !reason; i++) {
        uint64_t target = j->far_cases[i].target;
        uint32_t next = hfn_judging_lower(j, target + 1);
        if (next == 0 || target >= j->subjects[next - 1].end ||
            p->items[next - 1].pub.verdict == HOTFN_VERDICT_FRAGMENT) {
            reason = follow_case(p, target, any);
        } else if (target == j->subjects[next - 1].rva || target == p->items[next - 1].site_rva) {
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
        if (part != p->subject && p->items[part].pub.verdict != HOTFN_VERDICT_FRAGMENT) {
            continue;
        }
        reason = follow_cases_inside(p, &p->judging->subjects[part], any);
        if (reason == HOTFN_REASON_NONE) {
            reason = follow_cases_outside(p, part, any);
        }
    }
    if (reason == HOTFN_REASON_NONE && !p->case_seen) {
        return HOTFN_REASON_STACK_UNKNOWN; /* it leads nowhere that is known */
    }
    return reason;
}

/* ---- All of it. */

static void begin(hfn_prover *p, uint32_t subject)
{
    const hfn_subject *s = &p->judging->subjects[subject];

    hfn_prove_no_leaders(p);
    p->queue_count = p->call_count = p->tail_count = p->part_count = p->way_count = 0;
    p->subject = subject;
    p->rva = s->rva;
    p->end = s->end;
    p->dispatches = p->case_seen = p->loops = false;
    p->block = UINT64_MAX;
    p->reach = p->own_address = 0;
    p->pops = -1;
}

/* One round: all that is queued, then what indirect jumps lead to, and only then exceptions. */
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

uint32_t hfn_prove(hfn_prover *p, uint32_t subject)
{
    hfn_stack_state entry;
    uint32_t reason;
    bool any = true;

    begin(p, subject);
    p->judging->arch->begin_stack(&entry);
    reason = hfn_prove_leads(p, p->rva, &entry, false);
    while (reason == HOTFN_REASON_NONE && any) {
        reason = follow_all(p, &any);
    }
    if (reason == HOTFN_REASON_NONE && !hfn_pops_are_settled(p)) {
        return HOTFN_REASON_STACK_UNKNOWN;
    }
    /* Its next call, with a frame of ours above it or without, has others. */
    if (reason == HOTFN_REASON_NONE &&
        p->own_address == (HFN_FRAME_ADDRESS_STORED | HFN_FRAME_ADDRESS_COMPARED)) {
        return HOTFN_REASON_OWN_ADDRESS;
    }
    return reason;
}
