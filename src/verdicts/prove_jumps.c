/* SPDX-License-Identifier: MIT */
/*
 * Where a function's jumps and returns lead.  A jump within the function, or to a part of it that stands elsewhere,
 * leads to a leader.  One that leaves it with nothing of its own on the stack is a tail jump, and the call ends
 * there: to a function of this image, which must be proven too; by the PLT or another word of the GOT, to what a
 * standard describes or to an own function that is surely the one; or to what nobody knows, which ends the proof.
 * An indirect jump that is none of these goes to places of the function (prove.c follows them).
 */
#include "verdicts/prove.h"

#include "base/search.h"

enum {
    PLT_LINE_MAX = 5,  /* instructions of a PLT's entry up to its jump                  */
    STANDARD_WORDS = 7 /* i386: that a function of a standard's name takes at most (mmap64) */
};

/* ---- What stands at a place. */

/* With nothing of its own on the stack. */
static bool is_as_at_entry(const hfn_prover *p, const hfn_stack_state *state)
{
    hfn_stack_state entry;
    uint8_t stack = p->judging->arch->stack_register;

    p->judging->arch->begin_stack(&entry);
    return state->at[stack] == entry.at[stack];
}

/* Behind a landing pad its function is entered all the same. */
static bool is_own_entry(const hfn_prover *p, uint64_t target)
{
    return target == p->rva || target == p->items[p->subject].site_rva;
}

static bool begins_subject(const hfn_prover *p, uint64_t rva, uint32_t *index)
{
    *index = hfn_judging_lower(p->judging, rva);
    return *index < p->judging->count && p->judging->subjects[*index].rva == rva;
}

static bool is_in_plt(const hfn_prover *p, uint64_t rva)
{
    const hfn_judging *j = p->judging;
    uint32_t index = hfn_judging_lower(j, rva + 1);

    return index > 0 && rva < j->subjects[index - 1].end &&
           j->subjects[index - 1].kind == HOTFN_FUNCTION_PLT;
}

/* ---- Words of the GOT.  NULL: nobody knows what stands there. */

static const hfn_slot *slot_at(const hfn_prover *p, uint64_t rva)
{
    const hfn_judging *j = p->judging;
    size_t low =
        hfn_count_below(j->slots, j->slot_count, sizeof *j->slots, offsetof(hfn_slot, rva), rva);

    return low < j->slot_count && j->slots[low].rva == rva ? &j->slots[low] : NULL;
}

/* That the jump reads: a PLT entry's jump, or one in its place. */
static const hfn_slot *slot_of_jump(const hfn_prover *p, const hfn_instruction *in)
{
    return in->reads_memory_relative ? slot_at(p, in->target) : NULL;
}

/* i386: counted from what position-independent code keeps in a register. */
static void find_pic_target(const hfn_judging *j, hfn_instruction *in)
{
    if (in->flow == HFN_FLOW_JUMP_INDIRECT && in->from_register && j->pic_base != 0) {
        in->target = (uint32_t)(in->target + j->pic_base);
        in->reads_memory_relative = true;
    }
}

/* Of the PLT's entry at rva: its jump reads the word, or on some CPUs a load in front of it; the stack stays as
 * it is. */
static const hfn_slot *slot_of_plt_entry(const hfn_prover *p, uint64_t rva, hfn_stack_state state)
{
    const hfn_judging *j = p->judging;
    const hfn_region *region = hfn_code_region(&j->code, rva);
    hfn_instruction in = { .flow = HFN_FLOW_NEXT };
    hfn_partial_addresses pages = { .known = 0 };
    const hfn_slot *slot = NULL;

    for (int i = 0; i < PLT_LINE_MAX && region && in.flow == HFN_FLOW_NEXT && rva < region->end;
         i++, rva += in.length) {
        const uint8_t *bytes = region->bytes + (rva - region->rva);
        if (!j->arch->decode(bytes, region->end - rva, rva, j->info.link_base, &in)) {
            return NULL;
        }
        if (j->arch->complete) {
            j->arch->complete(bytes, &pages, &in);
        }
        find_pic_target(j, &in);
        if (in.reads_memory_relative) {
            slot = slot_of_jump(p, &in);
        }
        if (j->arch->step_stack(bytes, region->end - rva, rva, &state) != HFN_STACK_OK) {
            return NULL;
        }
    }
    return in.flow == HFN_FLOW_JUMP_INDIRECT && is_as_at_entry(p, &state) ? slot : NULL;
}

const hfn_slot *hfn_prove_slot(const hfn_prover *p, uint64_t rva)
{
    hfn_stack_state entry;

    p->judging->arch->begin_stack(&entry);
    return slot_of_plt_entry(p, rva, entry);
}

/* ---- Ends of the call. */

uint32_t hfn_prove_return(hfn_prover *p, uint32_t pops)
{
    if (p->pops >= 0 && p->pops != (int32_t)pops) {
        return HOTFN_REASON_RETURN_POPS;
    }
    p->pops = (int32_t)pops;
    return HOTFN_REASON_NONE;
}

/* What it is passed lies in registers; on i386 in so many words at most, and it takes none of them along. */
static uint32_t tail_to_standard(hfn_prover *p)
{
    if (p->judging->arch->pointer_bytes != 4) {
        return HOTFN_REASON_NONE;
    }
    p->reach = p->reach > 4 * STANDARD_WORDS ? p->reach : 4 * STANDARD_WORDS;
    return hfn_prove_return(p, 0);
}

/* What a function of a standard's name takes fits in registers, so whoever it jumps on to is passed no
 * stack arguments either: there is no room for any. */
static uint32_t tail_to_unknown(hfn_prover *p)
{
    const hfn_judging *j = p->judging;
    const char *name = NULL;

    if (j->subjects[p->subject].flags & (HOTFN_FUNCTION_GLOBAL | HOTFN_FUNCTION_EXPORTED)) {
        for (uint32_t n = 0; (name = hotfn_functions_get_name(j->functions, p->subject, n)) != NULL;
             n++) {
            if (hfn_is_standard(j, name)) {
                return tail_to_standard(p);
            }
        }
    }
    return HOTFN_REASON_TAIL_UNKNOWN;
}

/* It has to be proven too, which timing.c sees to. */
static uint32_t tail_to_function(hfn_prover *p, uint32_t index, const hfn_stack_state *state)
{
    const hfn_tail tail = { index, p->branch_field };

    hfn_prove_append(p, (void **)&p->tails, &p->tail_count, &p->tail_capacity, &tail, sizeof tail);
    hfn_prove_leader(p, p->block)->returns |= state->uncertain_calls > 0;
    return HOTFN_REASON_NONE;
}

/* To a function that is looked at, or one that a standard describes. */
static uint32_t tail_by_slot(hfn_prover *p, const hfn_slot *slot, const hfn_stack_state *state)
{
    uint32_t unused;

    p->branch_field = 0; /* what it leads to is the PLT */
    if (slot->target != UINT64_MAX && !is_in_plt(p, slot->target) &&
        begins_subject(p, slot->target, &unused)) {
        return hfn_prove_jump(p, slot->target, state);
    }
    return slot->is_standard ? tail_to_standard(p) : tail_to_unknown(p);
}

/* ---- Jumps. */

/* Code behind the target is read as the function's own: a part of it, or what is nobody's. */
static uint32_t lead_outside(hfn_prover *p, uint64_t target, const hfn_stack_state *state)
{
    return hfn_code_region(&p->judging->code, target) ? hfn_prove_leads(p, target, state, false)
                                                      : HOTFN_REASON_TAIL_UNKNOWN;
}

uint32_t hfn_prove_jump(hfn_prover *p, uint64_t target, const hfn_stack_state *state)
{
    bool is_tail = is_as_at_entry(p, state), is_function, is_plt;
    uint32_t index;

    if (is_own_entry(p, target)) {
        p->loops = true;
        return hfn_prove_leads(p, p->rva, state, false);
    }
    if (target > p->rva && target < p->end) {
        return hfn_prove_leads(p, target, state, false);
    }
    is_function = begins_subject(p, target, &index);
    is_plt = is_in_plt(p, target);
    if (is_plt || !is_function) { /* a PLT without unwind data is nobody's code */
        const hfn_slot *slot = is_tail ? slot_of_plt_entry(p, target, *state) : NULL;
        if (slot) {
            return tail_by_slot(p, slot, state);
        }
    }
    if (is_plt) {
        return is_tail ? tail_to_unknown(p) : HOTFN_REASON_TAIL_UNKNOWN;
    }
    if (!is_tail || !is_function || p->items[index].pub.verdict == HOTFN_VERDICT_FRAGMENT) {
        return lead_outside(p, target, state);
    }
    return tail_to_function(p, index, state);
}

static hfn_dispatch dispatch_of(const hfn_prover *p, const hfn_block *b)
{
    const hfn_straight_line line = { .bytes = b->region->bytes + (b->begin - b->region->rva),
                                     .size = b->region->end - b->begin,
                                     .rva = b->begin,
                                     .link_base = p->judging->info.link_base,
                                     .starts = b->starts,
                                     .count = b->count };
    hfn_dispatch d;

    p->judging->arch->dispatch(&line, &d);
    return d;
}

/* All indirect jumps within the function are followed together, so what they do not agree on is not known. */
static uint32_t lead_to_cases(hfn_prover *p, const hfn_stack_state *state)
{
    uint8_t stack = p->judging->arch->stack_register;

    if (p->dispatches && p->dispatch_state.at[stack] != state->at[stack]) {
        return HOTFN_REASON_STACK_UNKNOWN;
    }
    if (!p->dispatches) {
        p->dispatch_state = *state;
        p->dispatch_block = p->block;
    }
    hfn_prove_merge(&p->dispatch_state, state);
    p->dispatches = true;
    return HOTFN_REASON_NONE;
}

/* A table of functions makes the jump a call's end, to each of them.  They are known if nothing is wanting: a
 * hole is the loader's to fill, or nobody's, and where no bound is shown the table may go on behind any name.
 * A switch has cases of the function's own, the first of all. */
static bool all_entries_are_known(const hfn_prover *p, const hfn_dispatch *d)
{
    uint64_t target;
    uint32_t index;

    if (!hfn_tables_entry(p->judging, d, 0, &target)) {
        return false;
    }
    if (d->entry_count == 0) {
        return !begins_subject(p, target, &index) ||
               p->items[index].pub.verdict == HOTFN_VERDICT_FRAGMENT;
    }
    for (uint32_t k = 1; k < d->entry_count; k++) {
        if (!hfn_tables_entry(p->judging, d, k, &target)) {
            return false;
        }
    }
    return true;
}

/* With nothing of its own on the stack it is a call's end, unless a table shows. */
uint32_t hfn_prove_indirect_jump(hfn_prover *p, const hfn_block *b, const hfn_instruction *in,
                                 const hfn_stack_state *state)
{
    bool is_tail = is_as_at_entry(p, state);
    const hfn_slot *slot = slot_of_jump(p, in);
    hfn_dispatch d = { .kind = HFN_DISPATCH_POINTER };

    if (in->through_table && is_tail) {
        d = dispatch_of(p, b);
    }
    if (!slot && d.kind == HFN_DISPATCH_POINTER && d.table_rva != 0) {
        slot = slot_at(p, d.table_rva);
    }
    if (slot && is_tail) {
        return tail_by_slot(p, slot, state);
    }
    if (p->judging->subjects[p->subject].notes & HFN_NOTE_UNBOUNDED) {
        return HOTFN_REASON_STACK_UNKNOWN;
    }
    if (is_tail && (d.kind != HFN_DISPATCH_TABLE || !all_entries_are_known(p, &d))) {
        return tail_to_unknown(p);
    }
    return lead_to_cases(p, state);
}
