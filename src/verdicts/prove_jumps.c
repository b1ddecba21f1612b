/* SPDX-License-Identifier: MIT */
/*
 * Targets of jumps and returns.  A jump within the function, or to one of its fragments, adds an
 * edge.  A jump that leaves it with an empty frame is a tail jump and ends the call.  Its target
 * must be a function of this image, which is proven too; or a GOT slot whose function is
 * specified by a standard or is certainly this image's own.  An unknown target ends the proof.
 * All other indirect jumps are treated as switches, with targets in the function itself (prove.c).
 */
#include "verdicts/prove.h"

#include "base/search.h"

enum {
    PLT_LINE_MAX = 5,       /* instructions of a PLT entry, up to its jump                   */
    STANDARD_WORDS = 7,     /* i386: maximum argument words of a standard function (mmap64) */
    STANDARD_WORDS_HOME = 5 /* Windows x64 (bsearch, select) */
};

/* ---- Properties of an address. */

/* Whether the stack pointer is where it was at the entry. */
static bool has_empty_frame(const hfn_prover *p, const hfn_stack_state *state)
{
    hfn_stack_state entry;
    uint8_t stack = p->analysis->arch->stack_register;

    p->analysis->arch->begin_stack(&entry);
    return state->at[stack] == entry.at[stack];
}

/* Whether the target is the function's entry, or the site of its patch after a landing pad. */
static bool is_own_entry(const hfn_prover *p, uint64_t target)
{
    return target == p->rva || target == p->items[p->function].site_rva;
}

static bool begins_function(const hfn_prover *p, uint64_t rva, uint32_t *index)
{
    *index = hfn_analysis_find_body(p->analysis, rva);
    return *index < p->analysis->count && p->analysis->bodies[*index].rva == rva;
}

static bool is_in_plt(const hfn_prover *p, uint64_t rva)
{
    const hfn_analysis *a = p->analysis;
    uint32_t index = hfn_analysis_find_around(a, rva);

    return index != HFN_NO_FUNCTION && a->bodies[index].kind == HOTFN_FUNCTION_PLT;
}

/* ---- Slots of the GOT.  These functions return NULL if the slot is not known. */

static const hfn_slot *find_slot_at(const hfn_prover *p, uint64_t rva)
{
    const hfn_analysis *a = p->analysis;
    size_t low =
        hfn_count_below(a->slots, a->slot_count, sizeof *a->slots, offsetof(hfn_slot, rva), rva);

    return low < a->slot_count && a->slots[low].rva == rva ? &a->slots[low] : NULL;
}

/* The slot that an indirect jump reads. */
static const hfn_slot *find_slot_of_jump(const hfn_prover *p, const hfn_instruction *in)
{
    return in->reads_memory_relative ? find_slot_at(p, in->target) : NULL;
}

/* i386: the address is relative to the PIC base in a register. */
static void find_pic_target(const hfn_analysis *a, hfn_instruction *in)
{
    if (in->flow == HFN_FLOW_JUMP_INDIRECT && in->from_register && a->pic_base != 0) {
        in->target = (uint32_t)(in->target + a->pic_base);
        in->reads_memory_relative = true;
    }
}

/* The slot that the PLT entry at rva reads, by its jump or by a load before the jump.  The entry
 * must not change the stack. */
static const hfn_slot *find_slot_of_plt_entry(const hfn_prover *p, uint64_t rva,
                                              hfn_stack_state state)
{
    const hfn_analysis *a = p->analysis;
    const hfn_region *region = hfn_code_region(&a->code, rva);
    hfn_instruction in = { .flow = HFN_FLOW_NEXT };
    hfn_partial_addresses pages = { .known = 0 };
    const hfn_slot *slot = NULL;

    for (int i = 0; i < PLT_LINE_MAX && region && in.flow == HFN_FLOW_NEXT && rva < region->end;
         i++, rva += in.length) {
        const uint8_t *bytes = region->bytes + (rva - region->rva);
        if (!a->arch->decode(bytes, region->end - rva, rva, a->info.link_base, &in)) {
            return NULL;
        }
        if (a->arch->complete) {
            a->arch->complete(bytes, &pages, &in);
        }
        find_pic_target(a, &in);
        if (in.reads_memory_relative) {
            slot = find_slot_of_jump(p, &in);
        }
        if (a->arch->step_stack(bytes, region->end - rva, rva, &state) != HFN_STACK_OK) {
            return NULL;
        }
    }
    return in.flow == HFN_FLOW_JUMP_INDIRECT && has_empty_frame(p, &state) ? slot : NULL;
}

const hfn_slot *hfn_prove_find_slot(const hfn_prover *p, uint64_t rva)
{
    hfn_stack_state entry;

    p->analysis->arch->begin_stack(&entry);
    return find_slot_of_plt_entry(p, rva, entry);
}

/* ---- Returns and tail jumps. */

uint32_t hfn_prove_return(hfn_prover *p, uint32_t pops)
{
    if (p->pops >= 0 && p->pops != (int32_t)pops) {
        return HOTFN_REASON_RETURN_POPS;
    }
    p->pops = (int32_t)pops;
    return HOTFN_REASON_NONE;
}

/* A standard function has its arguments in registers; on i386 in at most STANDARD_WORDS words,
 * which it does not pop; on Windows x64 in at most STANDARD_WORDS_HOME registers and words. */
static uint32_t follow_tail_to_standard(hfn_prover *p)
{
    uint32_t bytes = p->analysis->home_bytes > 0 ? 8 * STANDARD_WORDS_HOME : 4 * STANDARD_WORDS;

    if (p->analysis->arch->pointer_bytes != 4 && p->analysis->home_bytes == 0) {
        return HOTFN_REASON_NONE;
    }
    p->reach = p->reach > bytes ? p->reach : bytes;
    return hfn_prove_return(p, 0);
}

/* A visible function with the name of a standard function has only the arguments that the standard
 * specifies, so it can pass no others to an unknown tail target. */
static uint32_t follow_tail_to_unknown(hfn_prover *p)
{
    const hfn_analysis *a = p->analysis;
    const char *name = NULL;

    if (a->bodies[p->function].flags & (HOTFN_FUNCTION_GLOBAL | HOTFN_FUNCTION_EXPORTED)) {
        for (uint32_t n = 0;
             (name = hotfn_functions_get_name(a->functions, p->function, n)) != NULL; n++) {
            if (hfn_is_standard(a, name)) {
                return follow_tail_to_standard(p);
            }
        }
    }
    return HOTFN_REASON_TAIL_UNKNOWN;
}

/* Record the tail jump.  timing.c requires a proof of its target. */
static uint32_t follow_tail_to_function(hfn_prover *p, uint32_t index, const hfn_stack_state *state)
{
    const hfn_tail tail = { index, p->branch_field };
    uint32_t reason = hfn_prove_reason(p->analysis->arch->leave_stack(state));

    if (reason != HOTFN_REASON_NONE) {
        return reason;
    }
    hfn_prove_append(p, (void **)&p->tails, &p->tail_count, &p->tail_capacity, &tail, sizeof tail);
    hfn_prove_find_leader(p, p->block)->returns |= state->uncertain_calls > 0;
    return HOTFN_REASON_NONE;
}

/* A tail jump through the GOT: to an own function, or to a function that a standard specifies. */
static uint32_t follow_tail_by_slot(hfn_prover *p, const hfn_slot *slot,
                                    const hfn_stack_state *state)
{
    uint32_t unused, reason = hfn_prove_reason(p->analysis->arch->leave_stack(state));

    if (reason != HOTFN_REASON_NONE) {
        return reason;
    }
    p->branch_field = 0; /* the branch itself targets the PLT */
    if (slot->target != UINT64_MAX && !is_in_plt(p, slot->target) &&
        begins_function(p, slot->target, &unused)) {
        return hfn_prove_jump(p, slot->target, state);
    }
    return slot->is_standard ? follow_tail_to_standard(p) : follow_tail_to_unknown(p);
}

/* ---- Jumps. */

/* Follow code outside the function as a part of it: a fragment, or code that belongs to no
 * function. */
static uint32_t follow_outside(hfn_prover *p, uint64_t target, const hfn_stack_state *state)
{
    return hfn_code_region(&p->analysis->code, target) ? hfn_prove_add_edge(p, target, state, false)
                                                       : HOTFN_REASON_TAIL_UNKNOWN;
}

uint32_t hfn_prove_jump(hfn_prover *p, uint64_t target, const hfn_stack_state *state)
{
    bool is_tail = has_empty_frame(p, state), is_function, is_plt;
    uint32_t index;

    if (is_own_entry(p, target)) {
        p->loops = true;
        return hfn_prove_add_edge(p, p->rva, state, false);
    }
    if (target > p->rva && target < p->end) {
        return hfn_prove_add_edge(p, target, state, false);
    }
    is_function = begins_function(p, target, &index);
    is_plt = is_in_plt(p, target);
    if (is_plt || !is_function) { /* a PLT without unwind data belongs to no function */
        const hfn_slot *slot = is_tail ? find_slot_of_plt_entry(p, target, *state) : NULL;
        if (slot) {
            return follow_tail_by_slot(p, slot, state);
        }
    }
    if (is_plt) {
        return is_tail ? follow_tail_to_unknown(p) : HOTFN_REASON_TAIL_UNKNOWN;
    }
    if (!is_tail || !is_function || p->items[index].pub.verdict == HOTFN_VERDICT_FRAGMENT) {
        return follow_outside(p, target, state);
    }
    return follow_tail_to_function(p, index, state);
}

hfn_straight_line hfn_prove_get_line(const hfn_prover *p, const hfn_block *b)
{
    return (hfn_straight_line){ .bytes = b->region->bytes + (b->begin - b->region->rva),
                                .size = b->region->end - b->begin,
                                .rva = b->begin,
                                .link_base = p->analysis->info.link_base,
                                .starts = b->starts,
                                .count = b->count };
}

static hfn_dispatch describe_dispatch(const hfn_prover *p, const hfn_block *b)
{
    const hfn_straight_line line = hfn_prove_get_line(p, b);
    hfn_dispatch d;

    p->analysis->arch->dispatch(&line, &d);
    return d;
}

/* All indirect jumps of the function share one set of targets, so their stack states are merged. */
static uint32_t record_dispatch(hfn_prover *p, const hfn_stack_state *state)
{
    uint8_t stack = p->analysis->arch->stack_register;

    if (p->dispatches && p->dispatch_state.at[stack] != state->at[stack]) {
        return HOTFN_REASON_STACK_UNKNOWN;
    }
    if (!p->dispatches) {
        p->dispatch_state = *state;
        p->dispatch_block = p->block;
    }
    hfn_stack_merge(&p->dispatch_state, state, true);
    p->dispatches = true;
    return HOTFN_REASON_NONE;
}

/* Whether all targets of a table are known.  In a table of functions every entry must lead to
 * code and the size must be known.  A table of unknown size is accepted only for a switch, whose
 * first entry is in the function. */
static bool all_entries_are_known(const hfn_prover *p, const hfn_dispatch *d)
{
    uint64_t target;
    uint32_t index;

    if (!hfn_tables_read_entry(p->analysis, d, 0, &target)) {
        return false;
    }
    if (d->entry_count == 0) {
        return !begins_function(p, target, &index) ||
               p->items[index].pub.verdict == HOTFN_VERDICT_FRAGMENT;
    }
    for (uint32_t k = 1; k < d->entry_count; k++) {
        if (!hfn_tables_read_entry(p->analysis, d, k, &target)) {
            return false;
        }
    }
    return true;
}

/* A jump with an empty frame is a tail jump, unless it uses a jump table with known entries. */
uint32_t hfn_prove_indirect_jump(hfn_prover *p, const hfn_block *b, const hfn_instruction *in,
                                 const hfn_stack_state *state)
{
    bool is_tail = has_empty_frame(p, state);
    const hfn_slot *slot = find_slot_of_jump(p, in);
    hfn_dispatch d = { .kind = HFN_DISPATCH_POINTER };

    if (in->through_table && is_tail) {
        d = describe_dispatch(p, b);
    }
    if (!slot && d.kind == HFN_DISPATCH_POINTER && d.table_rva != 0) {
        slot = find_slot_at(p, d.table_rva);
    }
    if (slot && is_tail) {
        return follow_tail_by_slot(p, slot, state);
    }
    if (p->analysis->bodies[p->function].traits & HFN_TRAIT_UNBOUNDED) {
        return HOTFN_REASON_STACK_UNKNOWN;
    }
    if (is_tail && (d.kind != HFN_DISPATCH_TABLE || !all_entries_are_known(p, &d))) {
        return follow_tail_to_unknown(p);
    }
    return record_dispatch(p, state);
}
