/* SPDX-License-Identifier: MIT */
/*
 * Which hookable functions may be timed.  A timed function runs as if called from a frame of ours, its
 * true caller's frame lies further up: so nothing in it may look there (prove.c), and nothing that it
 * jumps on to, which then runs in the same place, be that timed itself or not.  Jumps in a circle would put
 * frame upon frame.  Arguments on the stack at known places are copied below the frame, so how many
 * words of them all of these touch is part of the proof, and how many the return takes along.
 * Everything else is counted, with the reason in its flags.
 */
#include "base/search.h"
#include "verdicts/prove.h"
#include "verdicts/workers.h"

#include <stdlib.h>
#include <string.h>

#define BATCH 128u

/* from jumps on to to; field: of the jump's distance, 0 if it has none. */
typedef struct tail {
    uint32_t from, to;
    uint64_t field;
} tail;

/* Of a function, by index. */
typedef struct proof {
    bool holds;        /* may run behind a frame of ours                       */
    uint8_t words;     /* of arguments that are touched                         */
    int8_t pops;       /* words that the return takes along; -1: it does not return */
    bool stays;        /* one of its jumps cannot be made to come back                 */
    uint8_t words_on;  /* of arguments that are touched by what it jumps on to behind a frame */
    uint32_t comes_to; /* where a jump that comes back leads, plus 1; 0: it has none           */
} proof;

typedef struct timing {
    hfn_judging *judging;
    hfn_verdict *items;
    proof *proven;
    tail *tails; /* by from, after sort */
    size_t tail_count, tail_capacity;
    bool walks_own_stack;
} timing;

static void settle(hfn_verdict *v, uint32_t reason)
{
    v->pub.flags &= ~(HOTFN_VERDICT_TIMED | UINT32_C(0xff) << 16);
    v->pub.flags |= reason == HOTFN_REASON_NONE ? HOTFN_VERDICT_TIMED : reason << 16;
}

/* What needs no look at the code.  Where a fragment jumps to the entry, the proof will say whose it is. */
static uint32_t judge_entry(const timing *t, const hfn_verdict *v)
{
    uint32_t pad = v->pub.flags & HOTFN_VERDICT_LANDING_PAD ? 4 : 0;
    uint8_t notes = t->judging->subjects[v - t->items].notes;

    if (!t->judging->arch->step_stack) {
        return HOTFN_REASON_NOT_PROVEN;
    }
    if (t->walks_own_stack) {
        return HOTFN_REASON_OWN_STACK_WALK;
    }
    if ((v->pub.flags & (HOTFN_VERDICT_FLAGS_LIVE | HOTFN_VERDICT_RED_ZONE)) ||
        ((v->pub.flags & HOTFN_VERDICT_ENTRY_LOOP) &&
         (notes & (HFN_NOTE_LOOPS | HFN_NOTE_UNBOUNDED)))) {
        return HOTFN_REASON_ENTRY_JUMPED;
    }
    if (v->pub.patch_offset != pad) {
        return HOTFN_REASON_PATCH_INSIDE;
    }
    return HOTFN_REASON_NONE;
}

/* A call at the first byte: what would return is the callee, not the function. */
static bool begins_with_call(const hfn_judging *j, const hfn_verdict *v)
{
    hfn_span bytes = hfn_image_span(j->image, v->site_rva);
    hfn_instruction in;

    return v->pub.strategy == HOTFN_STRATEGY_RETARGET &&
           j->arch->decode(bytes.data, bytes.size, v->site_rva, j->info.link_base, &in) &&
           in.flow == HFN_FLOW_CALL;
}

static uint32_t judge_hook(const timing *t, const hfn_verdict *v)
{
    uint32_t reason = judge_entry(t, v);

    return reason == HOTFN_REASON_NONE && begins_with_call(t->judging, v)
               ? HOTFN_REASON_PATCH_INSIDE
               : reason;
}

/* What is not timed because of its hook alone is proven all the same, for those that jump on to it. */
static void judge_one(timing *t, hfn_prover *p, uint32_t index)
{
    hfn_verdict *v = &t->items[index];
    uint32_t reason = judge_hook(t, v), found, word = t->judging->arch->pointer_bytes;

    if (reason == HOTFN_REASON_NOT_PROVEN || reason == HOTFN_REASON_OWN_STACK_WALK) {
        settle(v, reason);
        return;
    }
    found = hfn_prove(p, index);
    if (found == HOTFN_REASON_NONE && p->reach > 0 && hfn_is_piece(t->judging, index)) {
        found = HOTFN_REASON_STACK_ARGUMENTS; /* they may be locals of its caller's */
    }
    t->proven[index] = (proof){ .holds = found == HOTFN_REASON_NONE,
                                .words = (uint8_t)((p->reach + word - 1) / word),
                                .pops = (int8_t)(p->pops < 0 ? -1 : p->pops / (int32_t)word) };
    if (reason == HOTFN_REASON_NONE &&
        (p->loops || (p->dispatches && (v->pub.flags & HOTFN_VERDICT_ENTRY_LOOP)))) {
        reason = HOTFN_REASON_ENTRY_JUMPED;
    }
    settle(v, reason != HOTFN_REASON_NONE ? reason : found);
    for (size_t k = 0; t->proven[index].holds && k < p->tail_count; k++) {
        const tail one = { index, p->tails[k].to, p->tails[k].field };
        hfn_judging_append(t->judging, (void **)&t->tails, &t->tail_count, &t->tail_capacity, &one,
                           sizeof one);
    }
}

static void judge_batch(void *user, uint32_t item)
{
    timing *t = user;
    uint32_t from = item * BATCH, to = from + BATCH;
    hfn_prover p;

    to = to < t->judging->count ? to : t->judging->count;
    if (!hfn_prover_init(&p, t->judging, t->items)) {
        t->judging->no_memory = true;
        return;
    }
    for (uint32_t i = from; i < to; i++) {
        if (t->items[i].pub.verdict == HOTFN_VERDICT_HOOKABLE) {
            judge_one(t, &p, i);
        }
    }
    t->judging->no_memory |= p.no_memory;
    hfn_prover_finish(&p);
}

/* ---- Tail jumps: unproven targets first, then circles. */

static void refuse(timing *t, uint32_t index, uint32_t reason)
{
    t->proven[index].holds = false;
    if (t->items[index].pub.flags & HOTFN_VERDICT_TIMED) {
        settle(&t->items[index], reason);
    }
}

static bool refuse_unproven(timing *t)
{
    bool any = false;

    for (size_t i = 0; i < t->tail_count; i++) {
        if (t->proven[t->tails[i].from].holds && !t->proven[t->tails[i].to].holds) {
            refuse(t, t->tails[i].from, HOTFN_REASON_TAIL_UNPROVEN);
            any = true;
        }
    }
    return any;
}

/* Functions whose jumps end somewhere are peeled off; what is left jumps in circles, or leads there. */
static void refuse_circles(timing *t)
{
    uint32_t *left = hfn_alloc(&t->judging->env, (t->judging->count + 1) * sizeof *left);
    bool any = true;

    if (!left) {
        t->judging->no_memory = true;
        return;
    }
    for (uint32_t i = 0; i < t->judging->count; i++) {
        left[i] = t->proven[i].holds;
    }
    while (any) { /* once more than the longest chain of tail jumps */
        any = false;
        for (size_t i = 0; i < t->tail_count; i++) {
            if (left[t->tails[i].from] && left[t->tails[i].to]) {
                left[t->tails[i].from] = 2;
            }
        }
        for (uint32_t i = 0; i < t->judging->count; i++) {
            any |= left[i] == 1;
            left[i] = left[i] == 2;
        }
    }
    for (uint32_t i = 0; i < t->judging->count; i++) {
        if (left[i]) {
            refuse(t, i, HOTFN_REASON_TAIL_CIRCLE);
        }
    }
    hfn_free(&t->judging->env, left, (t->judging->count + 1) * sizeof *left);
}

/* ---- Arguments. */

/* What the one touches and takes along, those do too that jump on to it. */
static bool pass_on(timing *t, const tail *one)
{
    proof *from = &t->proven[one->from];
    const proof *to = &t->proven[one->to];
    bool more = from->words < to->words, learns = from->pops < 0 && to->pops >= 0;

    if (!from->holds) {
        return false;
    }
    if (from->pops >= 0 && to->pops >= 0 && from->pops != to->pops) {
        refuse(t, one->from, HOTFN_REASON_RETURN_POPS);
        return true;
    }
    from->words = more ? to->words : from->words;
    from->pops = learns ? to->pops : from->pops;
    return more || learns;
}

static void settle_arguments(timing *t)
{
    bool any = true;

    while (any) {
        any = false;
        for (size_t i = 0; i < t->tail_count; i++) {
            any |= pass_on(t, &t->tails[i]);
        }
    }
    for (uint32_t i = 0; i < t->judging->count; i++) {
        const proof *p = &t->proven[i];
        uint32_t pops = p->pops <= 0          ? HOTFN_POPS_NOTHING
                        : p->pops == p->words ? HOTFN_POPS_ALL
                                              : HOTFN_POPS_ONE;
        if (!p->holds || !(t->items[i].pub.flags & HOTFN_VERDICT_TIMED)) {
            continue;
        }
        if (pops == HOTFN_POPS_ONE && p->pops != 1) {
            refuse(t, i, HOTFN_REASON_RETURN_POPS);
        } else {
            t->items[i].pub.flags |= ((uint32_t)p->words | pops << 5) << 24;
        }
    }
}

/* ---- Jumps that come back: to one function that may not run behind a frame, each at a site of the function's
 * own.  Its call ends there, and only then the jump is made (arch/x86/emit_tail_exit.c).  What it leads to finds the
 * true caller's arguments, so the function may not have touched its copies of them. */

static bool ends_with_unproven(const hfn_verdict *v)
{
    uint32_t reason = v->pub.flags >> 16 & 0xff;

    return reason == HOTFN_REASON_TAIL_UNPROVEN || reason == HOTFN_REASON_TAIL_CIRCLE;
}

/* Who wants to see what it returns (`--with alloc`) sees it where its call ends. */
static bool has_standard_name(const hfn_judging *j, uint32_t index)
{
    const char *name;

    for (uint32_t n = 0; (name = hotfn_functions_get_name(j->functions, index, n)) != NULL; n++) {
        if (hfn_is_standard(j, name)) {
            return true;
        }
    }
    return false;
}

static bool is_own_site(const hfn_judging *j, const tail *one)
{
    size_t low = hfn_count_below_u32(j->branches, j->branch_count, sizeof *j->branches,
                                     offsetof(hfn_branch, field), one->field);

    return low < j->branch_count && j->branches[low].field == one->field &&
           j->branches[low].target == one->to && one->field + 4 <= j->subjects[one->from].end &&
           hfn_judging_lower(j, one->field) == one->from + 1;
}

static void note_comeback(timing *t, const tail *one)
{
    proof *from = &t->proven[one->from];
    const proof *to = &t->proven[one->to];

    if (to->holds) { /* it may run behind the frame */
        from->words_on = from->words_on < to->words ? to->words : from->words_on;
        return;
    }
    if (!is_own_site(t->judging, one) || (t->items[one->to].pub.flags & HOTFN_VERDICT_FLAGS_LIVE) ||
        (from->comes_to != 0 && from->comes_to != one->to + 1)) {
        from->stays = true;
    }
    from->comes_to = one->to + 1;
}

static void settle_comebacks(timing *t)
{
    if (!t->judging->arch->patching->has_tail_exits ||
        (t->judging->flags & HOTFN_VERDICTS_NO_COMEBACK)) {
        return;
    }
    for (size_t i = 0; i < t->tail_count; i++) {
        if (ends_with_unproven(&t->items[t->tails[i].from])) {
            note_comeback(t, &t->tails[i]);
        }
    }
    for (uint32_t i = 0; i < t->judging->count; i++) {
        const proof *p = &t->proven[i];
        hfn_verdict *v = &t->items[i];
        if (!ends_with_unproven(v) || p->stays || p->comes_to == 0 || p->words > 0 ||
            has_standard_name(t->judging, i)) {
            continue;
        }
        settle(v, HOTFN_REASON_NONE);
        v->pub.flags |= (uint32_t)p->words_on << 24;
        v->pub.comes_to = p->comes_to;
    }
}

/* ---- Whose parts fragments are: who calls from there is known by them. */

/* The subject that rva lies in; count: none. */
static uint32_t subject_around(const hfn_judging *j, uint64_t rva)
{
    uint32_t next = hfn_judging_lower(j, rva + 1);

    return next > 0 && rva < j->subjects[next - 1].end ? next - 1 : j->count;
}

/* One that several functions jump to is nobody's, as is one that only other fragments do. */
void hfn_timing_find_owners(const hfn_judging *j, hfn_verdict *items)
{
    const uint32_t several = UINT32_MAX;

    for (size_t i = 0; i < j->branch_count; i++) {
        uint32_t part = subject_around(j, j->branches[i].target);
        uint32_t from = subject_around(j, j->branches[i].field);
        uint32_t *owner;
        if (part == j->count || from == j->count ||
            items[part].pub.verdict != HOTFN_VERDICT_FRAGMENT ||
            items[from].pub.verdict == HOTFN_VERDICT_FRAGMENT) {
            continue;
        }
        owner = &items[part].pub.comes_to;
        *owner = *owner == 0 || *owner == from + 1 ? from + 1 : several;
    }
    for (uint32_t i = 0; i < j->count; i++) {
        if (items[i].pub.comes_to == several) {
            items[i].pub.comes_to = 0;
        }
    }
}

/* ---- Runtimes that look at their own stacks. */

static bool has_own_walker(const hfn_judging *j)
{
    if (hfn_elf_section_named(j->image, ".gopclntab") ||
        hfn_elf_section_named(j->image, ".note.go.buildid")) {
        return true;
    }
    for (uint32_t i = 0; i < j->count; i++) {
        const char *name = hotfn_functions_get_name(j->functions, i, 0);
        if (name &&
            (strncmp(name, "_ZN2v88internal", 15) == 0 || strcmp(name, "JNI_CreateJavaVM") == 0)) {
            return true;
        }
    }
    return false;
}

/* ---- Programs that take the clock away from themselves. */

static void find_forbidden_clock(hfn_judging *j)
{
    uint64_t at;

    for (uint32_t i = 0; i < j->code.count && j->arch->disables_tsc; i++) {
        const hfn_region *region = &j->code.regions[i];
        if (j->arch->disables_tsc(region->bytes, region->end - region->rva, &at)) {
            j->tsc_disable_rva = region->rva + at;
            return;
        }
    }
}

/* ---- Functions that are reached through the PLT. */

/* Another image's function may stand there in the place of this one's.  Of C functions it need not use the
 * same arguments: this one's may ignore what is passed on the stack.  C++ names are those of one definition
 * wherever it stands (C++17, [basic.def.odr]).  An own function of a standard's name is looked at all the
 * same: not every program keeps to what is reserved. */
static void note_slot(void *user, const hfn_image_slot *slot)
{
    hfn_judging *j = user;
    bool is_one = strncmp(slot->name, "_Z", 2) == 0;
    bool is_standard = hfn_is_standard(j, slot->name);
    const hfn_slot one = { slot->place_rva, is_one || is_standard ? slot->target_rva : UINT64_MAX,
                           slot->target_rva, is_standard, hfn_pops_nothing(j, slot->name) };

    if (one.target != UINT64_MAX || one.is_standard || j->pops) {
        hfn_judging_append(j, (void **)&j->slots, &j->slot_count, &j->slot_capacity, &one,
                           sizeof one);
    }
}

static int compare_slots(const void *a, const void *b)
{
    const hfn_slot *left = a, *right = b;

    return (left->rva > right->rva) - (left->rva < right->rva);
}

static void find_slots(hfn_judging *j)
{
    hfn_image_each_slot(j->image, note_slot, j);
    if (j->slot_count > 0) {
        qsort(j->slots, j->slot_count, sizeof *j->slots, compare_slots);
    }
}

static void finish(timing *t)
{
    hfn_judging *j = t->judging;

    hfn_free(&j->env, j->pops, j->count + 1);
    hfn_free(&j->env, j->pieces, j->count + 1);
    j->pops = j->pieces = NULL;
    hfn_free(&j->env, t->proven, (j->count + 1) * sizeof *t->proven);
    if (t->tails) {
        hfn_free(&j->env, t->tails, t->tail_capacity * sizeof *t->tails);
    }
}

void hfn_timing_judge(hfn_judging *j, hfn_verdict *items)
{
    timing t = { .judging = j, .items = items, .walks_own_stack = has_own_walker(j) };

    t.proven = hfn_alloc(&j->env, (j->count + 1) * sizeof *t.proven);
    if (j->arch->pc_register) {
        j->pops = hfn_alloc(&j->env, j->count + 1);
    }
    if (j->arch->is_never_shared) {
        j->pieces = hfn_alloc(&j->env, j->count + 1);
    }
    if (!t.proven || (j->arch->pc_register && !j->pops) ||
        (j->arch->is_never_shared && !j->pieces)) {
        j->no_memory = true;
        finish(&t);
        return;
    }
    find_forbidden_clock(j);
    find_slots(j);
    hfn_workers_run(j->threads, (j->count + BATCH - 1) / BATCH, judge_batch, &t);
    while (refuse_unproven(&t)) {
        ;
    }
    refuse_circles(&t);
    while (refuse_unproven(&t)) {
        ;
    }
    settle_arguments(&t);
    while (refuse_unproven(&t)) {
        ;
    }
    settle_comebacks(&t);
    finish(&t);
}
