/* SPDX-License-Identifier: MIT */
/*
 * Code is followed from the entry, block by block; each block is read with the stack that leads to it.
 * Two ways that lead to one place with another depth of stack end the proof, but not where one of them
 * is the way behind a call that may never return.  Where an indirect jump leads is known from the
 * scan: every place in the function that a jump or a table marks is taken for a target.
 */
#include "verdicts/prove.h"

#include "base/compiler.h"
#include "base/search.h"

#include <string.h>

enum { LINE_MAX = 64, PLT_LINE_MAX = 5, LEADERS_MAX = 1 << 15, FIRST_CAPACITY = 256 };

/* ---- Memory. */

static void no_leaders(hfn_prover *p)
{
    for (uint32_t i = 0; i < p->capacity; i++)
        p->leaders[i].rva = UINT64_MAX;
    p->count = 0;
}

static bool make_leaders(hfn_prover *p, uint32_t capacity)
{
    p->leaders = hfn_alloc(&p->judging->env, capacity * sizeof *p->leaders);
    p->capacity = p->leaders ? capacity : 0;
    no_leaders(p);
    return p->leaders != NULL;
}

bool hfn_prover_init(hfn_prover *p, hfn_judging *j, const hfn_verdict *items)
{
    *p = (hfn_prover){ .judging = j, .items = items };
    return make_leaders(p, FIRST_CAPACITY);
}

void hfn_prover_finish(hfn_prover *p)
{
    const hotfn_env *env = &p->judging->env;

    hfn_free(env, p->leaders, p->capacity * sizeof *p->leaders);
    hfn_free(env, p->queue, p->queue_capacity * sizeof *p->queue);
    hfn_free(env, p->calls, p->call_capacity * sizeof *p->calls);
    hfn_free(env, p->tails, p->tail_capacity * sizeof *p->tails);
    hfn_free(env, p->parts, p->part_capacity * sizeof *p->parts);
    hfn_free(env, p->ways, p->way_capacity * sizeof *p->ways);
}

static bool append(hfn_prover *p, void **items, size_t *count, size_t *capacity, const void *item,
                   size_t bytes)
{
    if (!hfn_grow(&p->judging->env, items, capacity, *count + 1, bytes)) {
        p->no_memory = true;
        return false;
    }
    memcpy((char *)*items + (*count)++ * bytes, item, bytes);
    return true;
}

static hfn_leader *place_of(const hfn_prover *p, uint64_t rva)
{
    uint32_t at = (uint32_t)(rva * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (p->capacity - 1);

    while (p->leaders[at].rva != UINT64_MAX && p->leaders[at].rva != rva)
        at = (at + 1) & (p->capacity - 1);
    return &p->leaders[at];
}

/* The queue holds places, so it is made anew. */
static bool grow(hfn_prover *p)
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
        if (old[i].rva == UINT64_MAX)
            continue;
        hfn_leader *to = place_of(p, old[i].rva);
        *to = old[i];
        p->count++;
        uint32_t place = (uint32_t)(to - p->leaders);
        if (to->queued)
            append(p, (void **)&p->queue, &p->queue_count, &p->queue_capacity, &place,
                   sizeof place);
    }
    hfn_free(&p->judging->env, old, old_capacity * sizeof *old);
    return !p->no_memory;
}

/* ---- Joining ways. */

hfn_leader *hfn_prove_place(const hfn_prover *p, uint64_t rva)
{
    return place_of(p, rva);
}

static void enqueue(hfn_prover *p, hfn_leader *l)
{
    uint32_t place = (uint32_t)(l - p->leaders);

    if (!l->queued &&
        append(p, (void **)&p->queue, &p->queue_count, &p->queue_capacity, &place, sizeof place))
        l->queued = true;
}

static uint32_t meet(hfn_prover *p, hfn_leader *l, const hfn_stack_state *state, bool weak)
{
    uint8_t stack = p->judging->arch->stack_register;
    bool changed = false;

    if (l->state.at[stack] != state->at[stack]) {
        if (weak)
            return l->weak ? HOTFN_REASON_STACK_UNKNOWN : HOTFN_REASON_NONE;
        if (!l->weak)
            return HOTFN_REASON_STACK_UNKNOWN;
        l->state = *state;
        changed = true;
    }
    for (uint32_t i = 0; i < HFN_STACK_REGISTERS; i++) {
        if (l->state.at[i] != state->at[i] && l->state.at[i] != HFN_STACK_NOWHERE) {
            l->state.at[i] = HFN_STACK_NOWHERE;
            changed = true;
        }
    }
    if (state->called > l->state.called) {
        l->state.called = state->called;
        changed = true;
    }
    l->weak = l->weak && weak;
    if (changed)
        enqueue(p, l);
    return HOTFN_REASON_NONE;
}

uint32_t hfn_prove_leads(hfn_prover *p, uint64_t rva, const hfn_stack_state *state, bool weak)
{
    hfn_leader *l;

    hfn_pops_lead(p, rva, state);
    if (p->count >= LEADERS_MAX || (p->count * 2 >= p->capacity && !grow(p)))
        return HOTFN_REASON_STACK_UNKNOWN;
    l = place_of(p, rva);
    if (l->rva == rva)
        return meet(p, l, state, weak);
    *l = (hfn_leader){ .rva = rva, .state = *state, .weak = weak };
    p->count++;
    enqueue(p, l);
    return HOTFN_REASON_NONE;
}

/* ---- Jumps. */

static const hfn_subject *subject_at(const hfn_prover *p, uint64_t rva, uint32_t *index)
{
    *index = hfn_judging_lower(p->judging, rva);
    return *index < p->judging->count && p->judging->subjects[*index].rva == rva
               ? &p->judging->subjects[*index]
               : NULL;
}

static bool stands_at_entry(const hfn_prover *p, const hfn_stack_state *state)
{
    hfn_stack_state entry;
    uint8_t stack = p->judging->arch->stack_register;

    p->judging->arch->stack_begin(&entry);
    return state->at[stack] == entry.at[stack];
}

/* Behind a landing pad its function is entered all the same. */
static bool is_own_entry(const hfn_prover *p, uint64_t target)
{
    return target == p->rva || target == p->items[p->subject].site_rva;
}

/* i386: words that a function of a standard's name takes at most (mmap64). */
enum { STANDARD_WORDS = 7 };

/* All returns take the same from the stack. */
static uint32_t note_return(hfn_prover *p, uint32_t pops)
{
    if (p->pops >= 0 && p->pops != (int32_t)pops)
        return HOTFN_REASON_RETURN_POPS;
    p->pops = (int32_t)pops;
    return HOTFN_REASON_NONE;
}

static uint32_t jump_to_standard(hfn_prover *p)
{
    if (p->judging->arch->pointer_bytes != 4)
        return HOTFN_REASON_NONE;
    p->reach = p->reach > 4 * STANDARD_WORDS ? p->reach : 4 * STANDARD_WORDS;
    return note_return(p, 0);
}

/* What a function of a standard's name takes fits in registers, so whoever it jumps on to is passed no
 * stack arguments either: there is no room for any.  On i386 they are so many words at most. */
static uint32_t unknown_tail(hfn_prover *p)
{
    const hfn_judging *j = p->judging;
    const char *name = NULL;

    if (j->subjects[p->subject].flags & (HOTFN_FUNCTION_GLOBAL | HOTFN_FUNCTION_EXPORTED))
        for (uint32_t n = 0; (name = hotfn_functions_get_name(j->functions, p->subject, n)) != NULL;
             n++)
            if (hfn_is_standard(j, name))
                return jump_to_standard(p);
    return HOTFN_REASON_TAIL_UNKNOWN;
}

/* The word of the GOT that the jump goes by: a PLT entry's jump, or one in its place.  NULL: nobody knows
 * what stands there. */
static const hfn_slot *slot_at(const hfn_prover *p, uint64_t rva)
{
    const hfn_judging *j = p->judging;
    size_t low =
        hfn_count_below(j->slots, j->slot_count, sizeof *j->slots, offsetof(hfn_slot, rva), rva);

    return low < j->slot_count && j->slots[low].rva == rva ? &j->slots[low] : NULL;
}

static const hfn_slot *slot_of(const hfn_prover *p, const hfn_instruction *in)
{
    return in->reads_memory_relative ? slot_at(p, in->target) : NULL;
}

/* The same of the PLT's entry at rva: its jump reads the word, or on some CPUs a load in front of it; the
 * stack stays as it is. */
static const hfn_slot *slot_behind(const hfn_prover *p, uint64_t rva, hfn_stack_state state)
{
    const hfn_judging *j = p->judging;
    const hfn_region *region = hfn_code_region(&j->code, rva);
    hfn_instruction in = { .flow = HFN_FLOW_NEXT };
    hfn_pages pages = { .known = 0 };
    const hfn_slot *slot = NULL;

    for (int i = 0; i < PLT_LINE_MAX && region && in.flow == HFN_FLOW_NEXT && rva < region->end;
         i++, rva += in.length) {
        const uint8_t *bytes = region->bytes + (rva - region->rva);
        if (!j->arch->decode(bytes, region->end - rva, rva, j->info.link_base, &in))
            return NULL;
        if (j->arch->complete)
            j->arch->complete(bytes, &pages, &in);
        if (in.flow == HFN_FLOW_JUMP_INDIRECT && in.from_register && j->pic_base != 0) {
            in.target = (uint32_t)(in.target + j->pic_base);
            in.reads_memory_relative = true;
        }
        if (in.reads_memory_relative)
            slot = slot_of(p, &in);
        if (j->arch->stack_step(bytes, region->end - rva, rva, &state) != HFN_STACK_FINE)
            return NULL;
    }
    return in.flow == HFN_FLOW_JUMP_INDIRECT && stands_at_entry(p, &state) ? slot : NULL;
}

const hfn_slot *hfn_prove_slot(const hfn_prover *p, uint64_t rva)
{
    hfn_stack_state entry;

    p->judging->arch->stack_begin(&entry);
    return slot_behind(p, rva, entry);
}

static bool is_in_plt(const hfn_prover *p, uint64_t rva)
{
    const hfn_judging *j = p->judging;
    uint32_t index = hfn_judging_lower(j, rva + 1);

    return index > 0 && rva < j->subjects[index - 1].end &&
           j->subjects[index - 1].kind == HOTFN_FUNCTION_PLT;
}

static uint32_t jump_to(hfn_prover *p, uint64_t target, const hfn_stack_state *state);

/* A tail jump by a word of the GOT: to a function that is looked at, or one that a standard describes. */
static uint32_t jump_by(hfn_prover *p, const hfn_slot *slot, const hfn_stack_state *state)
{
    uint32_t unused;

    p->field = 0; /* what it leads to is the PLT */
    if (slot->target != UINT64_MAX && !is_in_plt(p, slot->target) &&
        subject_at(p, slot->target, &unused))
        return jump_to(p, slot->target, state);
    return slot->is_standard ? jump_to_standard(p) : unknown_tail(p);
}

static uint32_t jump_to(hfn_prover *p, uint64_t target, const hfn_stack_state *state)
{
    uint32_t index;
    const hfn_subject *other;

    if (is_own_entry(p, target)) {
        p->loops = true;
        return hfn_prove_leads(p, p->rva, state, false);
    }
    if (target > p->rva && target < p->end)
        return hfn_prove_leads(p, target, state, false);
    other = subject_at(p, target, &index);
    if (is_in_plt(p, target) || !other) { /* a PLT without unwind data is nobody's code */
        const hfn_slot *slot = stands_at_entry(p, state) ? slot_behind(p, target, *state) : NULL;
        if (slot)
            return jump_by(p, slot, state);
        if (is_in_plt(p, target))
            return stands_at_entry(p, state) ? unknown_tail(p) : HOTFN_REASON_TAIL_UNKNOWN;
    }
    if (!other || p->items[index].pub.verdict == HOTFN_VERDICT_FRAGMENT ||
        !stands_at_entry(p, state))
        return hfn_code_region(&p->judging->code, target) ? hfn_prove_leads(p, target, state, false)
                                                          : HOTFN_REASON_TAIL_UNKNOWN;
    const hfn_tail tail = { index, p->field };
    append(p, (void **)&p->tails, &p->tail_count, &p->tail_capacity, &tail, sizeof tail);
    place_of(p, p->block)->returns |= state->called > 0;
    return HOTFN_REASON_NONE;
}

/* The instructions of the block that is read, for arch's dispatch. */
typedef struct block {
    const hfn_region *region;
    uint64_t begin;
    uint32_t starts[LINE_MAX];
    uint32_t count;
} block;

static hfn_dispatch dispatch_of(const hfn_prover *p, const block *b)
{
    const hfn_line line = { .bytes = b->region->bytes + (b->begin - b->region->rva),
                            .size = b->region->end - b->begin,
                            .rva = b->begin,
                            .link_base = p->judging->info.link_base,
                            .starts = b->starts,
                            .count = b->count };
    hfn_dispatch d;

    p->judging->arch->dispatch(&line, &d);
    return d;
}

/* With nothing of its own on the stack it is a call's end, unless a table shows. */
static uint32_t jump_indirectly(hfn_prover *p, const block *b, const hfn_instruction *in,
                                const hfn_stack_state *state)
{
    uint8_t stack = p->judging->arch->stack_register;
    const hfn_slot *slot = slot_of(p, in);
    hfn_dispatch d = { .kind = HFN_DISPATCH_POINTER };

    if (in->through_table && stands_at_entry(p, state))
        d = dispatch_of(p, b);
    if (!slot && d.kind == HFN_DISPATCH_POINTER && d.table_rva != 0)
        slot = slot_at(p, d.table_rva);
    if (slot && stands_at_entry(p, state))
        return jump_by(p, slot, state);
    if (p->judging->subjects[p->subject].notes & HFN_NOTE_UNBOUNDED)
        return HOTFN_REASON_STACK_UNKNOWN;
    if (stands_at_entry(p, state) && d.kind != HFN_DISPATCH_TABLE)
        return unknown_tail(p);
    if (p->dispatches && p->dispatch_state.at[stack] != state->at[stack])
        return HOTFN_REASON_STACK_UNKNOWN;
    if (!p->dispatches) {
        p->dispatch_state = *state;
        p->dispatch_block = p->block;
    }
    if (state->called > p->dispatch_state.called)
        p->dispatch_state.called = state->called;
    for (uint32_t i = 0; i < HFN_STACK_REGISTERS; i++)
        if (p->dispatch_state.at[i] != state->at[i])
            p->dispatch_state.at[i] = HFN_STACK_NOWHERE;
    p->dispatches = true;
    return HOTFN_REASON_NONE;
}

/* ---- Blocks. */

uint32_t hfn_prove_reason(hfn_stack_answer answer)
{
    switch (answer) {
    case HFN_STACK_FINE: return HOTFN_REASON_NONE;
    case HFN_STACK_CALLER: return HOTFN_REASON_STACK_ARGUMENTS;
    case HFN_STACK_RETURN: return HOTFN_REASON_RETURN_ADDRESS;
    case HFN_STACK_POPS: return HOTFN_REASON_RETURN_POPS;
    default: return HOTFN_REASON_STACK_UNKNOWN;
    }
}

static void note_call(hfn_prover *p, uint64_t at, const hfn_stack_state *state)
{
    const hfn_arch *arch = p->judging->arch;
    const hfn_call_state call = { at,
                                  state->at[arch->stack_register],
                                  state->at[arch->frame_register],
                                  state->at[arch->return_place],
                                  state->called };

    append(p, (void **)&p->calls, &p->call_count, &p->call_capacity, &call, sizeof call);
}

/* What lies behind the last byte of a function or a part is none of its own. */
static uint64_t end_of_part(const hfn_prover *p, uint64_t rva)
{
    const hfn_judging *j = p->judging;
    uint32_t next = hfn_judging_lower(j, rva + 1);

    if (next > 0 && rva < j->subjects[next - 1].end)
        return j->subjects[next - 1].end;
    return next < j->count ? j->subjects[next].rva : UINT64_MAX;
}

static void note_part(hfn_prover *p, uint64_t rva)
{
    uint32_t index = hfn_judging_lower(p->judging, rva + 1);

    if (index == 0 || rva >= p->judging->subjects[index - 1].end)
        return;
    index--;
    for (size_t i = 0; i < p->part_count; i++)
        if (p->parts[i] == index)
            return;
    append(p, (void **)&p->parts, &p->part_count, &p->part_capacity, &index, sizeof index);
}

/* A call to a place in the function: it wants its own address, or is a retpoline's, whose callee puts
 * another return address in the place of this one. */
static bool is_inside(const hfn_prover *p, uint64_t target)
{
    const hfn_judging *j = p->judging;

    for (size_t i = 0; i < p->part_count; i++)
        if (target > j->subjects[p->parts[i]].rva && target < j->subjects[p->parts[i]].end)
            return target != p->items[p->parts[i]].site_rva;
    return false;
}

typedef enum way { WAY_ON, WAY_END } way;

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

/* One instruction with its flow; *reason is set where the proof ends. */
static way step(hfn_prover *p, block *b, uint64_t at, const hfn_instruction *in,
                hfn_stack_state *state, uint32_t *reason)
{
    const uint8_t *bytes = b->region->bytes + (at - b->region->rva);
    uint8_t called = state->called, made = pc_register(p, in);

    if (made != HFN_NO_REGISTER) {
        state->at[made] = HFN_STACK_NOWHERE;
        *reason = HOTFN_REASON_NONE;
        return WAY_ON;
    }
    *reason = hfn_prove_reason(p->judging->arch->stack_step(bytes, b->region->end - at, at, state));
    if (*reason != HOTFN_REASON_NONE)
        return WAY_END;
    if (is_push_of_place(p, at, in))
        return WAY_ON;
    if (in->flow == HFN_FLOW_CALL && state->called)
        hfn_pops_call(p, in->target, called, state);
    hfn_pops_note(p, called, state, in->flow == HFN_FLOW_RETURN);
    switch (in->flow) {
    case HFN_FLOW_CALL:
        if (is_inside(p, in->target))
            *reason = HOTFN_REASON_STACK_UNKNOWN;
        note_call(p, at, state);
        if (*reason == HOTFN_REASON_NONE && p->judging->pieces)
            *reason = hfn_prove_piece(p, in->target, state);
        return WAY_ON;
    case HFN_FLOW_CALL_INDIRECT: note_call(p, at, state); return WAY_ON;
    case HFN_FLOW_JUMP: *reason = jump_to(p, in->target, state); return WAY_END;
    case HFN_FLOW_JUMP_IF: *reason = jump_to(p, in->target, state); return WAY_ON;
    case HFN_FLOW_JUMP_INDIRECT: *reason = jump_indirectly(p, b, in, state); return WAY_END;
    case HFN_FLOW_RETURN: *reason = note_return(p, state->pops); return WAY_END;
    default: return WAY_ON;
    }
}

static uint32_t read_block(hfn_prover *p, const hfn_leader *from)
{
    const hfn_judging *j = p->judging;
    hfn_stack_state state = from->state;
    uint64_t at = from->rva, end = end_of_part(p, at);
    bool weak = from->weak, behind_call = false; /* which may not return */
    block b = { .region = hfn_code_region(&j->code, at), .begin = at };
    hfn_instruction in;
    uint32_t reason;

    if (!b.region)
        return HOTFN_REASON_STACK_UNKNOWN;
    note_part(p, at);
    p->block = at;
    for (;;) {
        if (at != b.begin && at < end && at < b.region->end &&
            (hfn_region_marks(b.region, at) & HFN_MARK_JUMPED))
            return hfn_prove_leads(p, at, &state, weak);
        if (at >= b.region->end || !j->arch->decode(b.region->bytes + (at - b.region->rva),
                                                    b.region->end - at, at, j->info.link_base, &in))
            return behind_call ? HOTFN_REASON_NONE : HOTFN_REASON_STACK_UNKNOWN;
        if (in.flow == HFN_FLOW_STOP)
            return HOTFN_REASON_NONE;
        if (b.count == LINE_MAX) {
            memmove(b.starts, b.starts + LINE_MAX / 2, LINE_MAX / 2 * sizeof *b.starts);
            b.count = LINE_MAX / 2;
        }
        b.starts[b.count++] = (uint32_t)(at - b.begin);
        p->field = in.length > 4 ? at + in.length - 4 : 0;
        if (step(p, &b, at, &in, &state, &reason) == WAY_END || reason != HOTFN_REASON_NONE)
            return reason;
        if ((in.flow == HFN_FLOW_CALL && !is_push_of_place(p, at, &in) &&
             pc_register(p, &in) == HFN_NO_REGISTER) ||
            in.flow == HFN_FLOW_CALL_INDIRECT)
            weak = behind_call = true;
        else
            behind_call = behind_call && in.is_padding;
        at += in.length;
        p->field = 0;
        if (at >= end)
            return behind_call ? HOTFN_REASON_NONE : jump_to(p, at, &state);
        if (in.flow == HFN_FLOW_JUMP_IF && state.called) /* it may lead to a return, what follows not */
            return hfn_prove_leads(p, at, &state, weak);
    }
}

static uint32_t read_queued(hfn_prover *p)
{
    while (p->queue_count > 0) {
        hfn_leader *l = &p->leaders[p->queue[--p->queue_count]];
        hfn_leader copy = *l;
        uint32_t reason;

        l->queued = false;
        reason = read_block(p, &copy);
        if (reason != HOTFN_REASON_NONE || p->no_memory)
            return p->no_memory ? HOTFN_REASON_STACK_UNKNOWN : reason;
    }
    return HOTFN_REASON_NONE;
}

/* A place not read yet may be the indirect jump's. */
static uint32_t follow_case(hfn_prover *p, uint64_t rva, bool *any)
{
    p->case_seen = true;
    if (place_of(p, rva)->rva == rva)
        return HOTFN_REASON_NONE;
    *any = true;
    p->block = p->dispatch_block;
    return hfn_prove_leads(p, rva, &p->dispatch_state, true);
}

/* Every place in a part that something leads to ... */
static uint32_t follow_cases_inside(hfn_prover *p, const hfn_subject *part, bool *any)
{
    uint32_t reason = HOTFN_REASON_NONE;

    for (uint64_t at = part->rva + 1; at < part->end && reason == HOTFN_REASON_NONE; at++)
        if (hfn_region_marks(part->region, at) & (HFN_MARK_JUMPED | HFN_MARK_TAKEN))
            reason = follow_case(p, at, any);
    return reason;
}

/* ... and where its tables lead outside of it, if that belongs to no other function. */
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
            p->items[next - 1].pub.verdict == HOTFN_VERDICT_FRAGMENT)
            reason = follow_case(p, target, any);
    }
    return reason;
}

static uint32_t follow_dispatch(hfn_prover *p, bool *any)
{
    uint32_t reason = HOTFN_REASON_NONE;

    for (size_t i = 0; i < p->part_count && reason == HOTFN_REASON_NONE; i++) {
        uint32_t part = p->parts[i];
        if (part != p->subject && p->items[part].pub.verdict != HOTFN_VERDICT_FRAGMENT)
            continue;
        reason = follow_cases_inside(p, &p->judging->subjects[part], any);
        if (reason == HOTFN_REASON_NONE)
            reason = follow_cases_outside(p, part, any);
    }
    if (reason == HOTFN_REASON_NONE && !p->case_seen)
        return HOTFN_REASON_STACK_UNKNOWN; /* it leads nowhere that is known */
    return reason;
}

uint32_t hfn_prove(hfn_prover *p, uint32_t subject)
{
    const hfn_subject *s = &p->judging->subjects[subject];
    hfn_stack_state entry;
    uint32_t reason;
    bool any = true;

    no_leaders(p);
    p->queue_count = p->call_count = p->tail_count = p->part_count = p->way_count = 0;
    p->subject = subject;
    p->rva = s->rva;
    p->end = s->end;
    p->dispatches = p->case_seen = p->loops = false;
    p->block = UINT64_MAX;
    p->reach = 0;
    p->pops = -1;
    p->judging->arch->stack_begin(&entry);
    reason = hfn_prove_leads(p, s->rva, &entry, false);
    while (reason == HOTFN_REASON_NONE && any) {
        any = false;
        reason = read_queued(p);
        if (reason == HOTFN_REASON_NONE && p->dispatches)
            reason = follow_dispatch(p, &any);
        p->block = UINT64_MAX;
        if (reason == HOTFN_REASON_NONE && !any)
            reason = hfn_prove_landing_pads(p, &any);
    }
    if (reason == HOTFN_REASON_NONE && !hfn_pops_are_settled(p))
        return HOTFN_REASON_STACK_UNKNOWN;
    return reason;
}
