/* SPDX-License-Identifier: MIT */
/*
 * Decides which hookable functions may be timed.  A timed function runs with a frame of the
 * engine between it and its caller, so neither the function nor any tail target may access its
 * caller's frame (prove.c).  Cycles of tail jumps would nest frames without end.  Stack arguments
 * at known offsets are copied below the frame, so the number of words that the function and its
 * tail targets access is part of the proof, and on i386 how many bytes they pop.  All other
 * functions are counted only, with the reason in their flags.
 */
#include "base/search.h"
#include "verdicts/prove.h"
#include "verdicts/workers.h"

#include <stdlib.h>
#include <string.h>

#define BATCH 128u

/* A tail jump; field: RVA of its 4-byte displacement, 0 if it has none. */
typedef struct tail {
    uint32_t from, to;
    uint64_t field;
} tail;

/* The proof of a function, by index. */
typedef struct proof {
    bool holds;           /* the function may run inside a timed call                         */
    uint8_t words;        /* stack argument words that it accesses                            */
    uint8_t stored;       /* bit n: it stores to argument word n                              */
    int8_t pops;          /* words that its returns pop; -1: it does not return               */
    bool is_blocked;      /* one of its tail exits cannot be patched                          */
    uint8_t tail_words;   /* argument words of tail targets that run inside the timed call    */
    uint32_t tail_target; /* target of its tail exits, plus 1; 0: none                        */
} proof;

typedef struct timing {
    hfn_analysis *analysis;
    hfn_verdict *items;
    proof *proven;
    tail *tails; /* of proven functions */
    size_t tail_count, tail_capacity;
} timing;

static void set_timing_result(hfn_verdict *v, uint32_t reason)
{
    v->pub.flags &= ~(HOTFN_VERDICT_TIMED | UINT32_C(0xff) << 16);
    v->pub.flags |= reason == HOTFN_REASON_NONE ? HOTFN_VERDICT_TIMED : reason << 16;
}

/* The reasons that follow from the verdict and the traits alone.  A jump to the entry from a
 * fragment is none of them: the proof shows whether the fragment belongs to the function. */
static uint32_t check_entry(const timing *t, const hfn_verdict *v)
{
    uint32_t pad = v->pub.flags & HOTFN_VERDICT_LANDING_PAD ? 4 : 0;
    uint16_t traits = t->analysis->bodies[v - t->items].traits;

    if (!t->analysis->arch->step_stack) {
        return HOTFN_REASON_NOT_PROVEN;
    }
    if (t->analysis->runtimes & HFN_RUNTIME_WALKS_STACK) {
        return HOTFN_REASON_OWN_STACK_WALK;
    }
    if (t->analysis->has_own_threads) {
        return HOTFN_REASON_OWN_THREADS;
    }
    if ((v->pub.flags & (HOTFN_VERDICT_FLAGS_LIVE | HOTFN_VERDICT_RED_ZONE)) ||
        ((v->pub.flags & HOTFN_VERDICT_ENTRY_LOOP) &&
         (traits & (HFN_TRAIT_LOOPS | HFN_TRAIT_UNBOUNDED)))) {
        return HOTFN_REASON_ENTRY_JUMPED;
    }
    if (v->pub.patch_offset != pad) {
        return HOTFN_REASON_PATCH_INSIDE;
    }
    return HOTFN_REASON_NONE;
}

/* Whether the patch retargets a call at the first byte: the stub would time the callee. */
static bool begins_with_call(const hfn_analysis *a, const hfn_verdict *v)
{
    hfn_span bytes = hfn_image_span(a->image, v->site_rva);
    hfn_instruction in;

    return v->pub.strategy == HOTFN_STRATEGY_RETARGET &&
           a->arch->decode(bytes.data, bytes.size, v->site_rva, a->info.link_base, &in) &&
           in.flow == HFN_FLOW_CALL;
}

static uint32_t check_hook(const timing *t, const hfn_verdict *v)
{
    uint32_t reason = check_entry(t, v);

    return reason == HOTFN_REASON_NONE && begins_with_call(t->analysis, v)
               ? HOTFN_REASON_PATCH_INSIDE
               : reason;
}

/* Prove a function and record its tail jumps.  A function that only its hook prevents from being
 * timed is proven too, because other functions may tail-jump to it. */
static void prove_item(timing *t, hfn_prover *p, uint32_t index)
{
    hfn_verdict *v = &t->items[index];
    uint32_t reason = check_hook(t, v), found, word = t->analysis->arch->pointer_bytes;

    if (reason == HOTFN_REASON_NOT_PROVEN || reason == HOTFN_REASON_OWN_STACK_WALK ||
        reason == HOTFN_REASON_OWN_THREADS) {
        set_timing_result(v, reason);
        return;
    }
    found = hfn_prove_function(p, index);
    if (found == HOTFN_REASON_NONE && p->reach > 0 && hfn_is_outlined(t->analysis, index)) {
        found = HOTFN_REASON_STACK_ARGUMENTS; /* they may be locals of the caller */
    }
    t->proven[index] = (proof){ .holds = found == HOTFN_REASON_NONE,
                                .words = (uint8_t)((p->reach + word - 1) / word),
                                .stored = (uint8_t)p->stored_arguments,
                                .pops = (int8_t)(p->pops < 0 ? -1 : p->pops / (int32_t)word) };
    if (reason == HOTFN_REASON_NONE &&
        (p->loops || (p->dispatches && (v->pub.flags & HOTFN_VERDICT_ENTRY_LOOP)))) {
        reason = HOTFN_REASON_ENTRY_JUMPED;
    }
    set_timing_result(v, reason != HOTFN_REASON_NONE ? reason : found);
    for (size_t k = 0; t->proven[index].holds && k < p->tail_count; k++) {
        const tail jump = { index, p->tails[k].to, p->tails[k].field };
        hfn_analysis_append(t->analysis, (void **)&t->tails, &t->tail_count, &t->tail_capacity,
                            &jump, sizeof jump);
    }
}

static void prove_batch(void *user, uint32_t item)
{
    timing *t = user;
    uint32_t from = item * BATCH, to = from + BATCH;
    hfn_prover p;

    to = to < t->analysis->count ? to : t->analysis->count;
    if (!hfn_prover_init(&p, t->analysis, t->items)) {
        t->analysis->no_memory = true;
        return;
    }
    for (uint32_t i = from; i < to; i++) {
        if (t->items[i].pub.verdict == HOTFN_VERDICT_HOOKABLE) {
            prove_item(t, &p, i);
        }
    }
    t->analysis->no_memory |= p.no_memory;
    hfn_prover_finish(&p);
}

/* ---- Tail jumps: unproven targets first, then cycles. */

static void withdraw_proof(timing *t, uint32_t index, uint32_t reason)
{
    t->proven[index].holds = false;
    if (t->items[index].pub.flags & HOTFN_VERDICT_TIMED) {
        set_timing_result(&t->items[index], reason);
    }
}

static bool refuse_unproven(timing *t)
{
    bool any = false;

    for (size_t i = 0; i < t->tail_count; i++) {
        if (t->proven[t->tails[i].from].holds && !t->proven[t->tails[i].to].holds) {
            withdraw_proof(t, t->tails[i].from, HOTFN_REASON_TAIL_UNPROVEN);
            any = true;
        }
    }
    return any;
}

/* Remove the functions without a tail jump to a remaining function, until none is removed; those
 * that remain are in a cycle or lead into one. */
static void refuse_cycles(timing *t)
{
    uint32_t *remaining =
        hfn_allocate_zeroed(&t->analysis->env, (t->analysis->count + 1) * sizeof *remaining);
    bool any = true;

    if (!remaining) {
        t->analysis->no_memory = true;
        return;
    }
    for (uint32_t i = 0; i < t->analysis->count; i++) {
        remaining[i] = t->proven[i].holds;
    }
    while (any) { /* one round more than the longest chain of tail jumps has */
        any = false;
        for (size_t i = 0; i < t->tail_count; i++) {
            if (remaining[t->tails[i].from] && remaining[t->tails[i].to]) {
                remaining[t->tails[i].from] = 2;
            }
        }
        for (uint32_t i = 0; i < t->analysis->count; i++) {
            any |= remaining[i] == 1;
            remaining[i] = remaining[i] == 2;
        }
    }
    for (uint32_t i = 0; i < t->analysis->count; i++) {
        if (remaining[i]) {
            withdraw_proof(t, i, HOTFN_REASON_TAIL_CYCLE);
        }
    }
    hfn_free_memory(&t->analysis->env, remaining, (t->analysis->count + 1) * sizeof *remaining);
}

/* ---- Arguments. */

/* Merge the accessed, stored and popped words of a tail target into the jumping function; true if
 * that changed it. */
static bool merge_tail_target(timing *t, const tail *jump)
{
    proof *from = &t->proven[jump->from];
    const proof *to = &t->proven[jump->to];
    bool more_words = from->words < to->words, sets_pops = from->pops < 0 && to->pops >= 0;
    bool more_stored = (to->stored & ~from->stored) != 0;

    if (!from->holds) {
        return false;
    }
    if (from->pops >= 0 && to->pops >= 0 && from->pops != to->pops) {
        withdraw_proof(t, jump->from, HOTFN_REASON_RETURN_POPS);
        return true;
    }
    from->words = more_words ? to->words : from->words;
    from->stored |= to->stored;
    from->pops = sets_pops ? to->pops : from->pops;
    return more_words || more_stored || sets_pops;
}

/* The stored words that the caller can still read when the return has popped some of them. */
static uint8_t get_kept_stores(const proof *p)
{
    return p->pops >= 8 ? 0 : p->pops > 0 ? p->stored >> p->pops << p->pops : p->stored;
}

static void resolve_arguments(timing *t)
{
    bool any = true;

    while (any) {
        any = false;
        for (size_t i = 0; i < t->tail_count; i++) {
            any |= merge_tail_target(t, &t->tails[i]);
        }
    }
    for (uint32_t i = 0; i < t->analysis->count; i++) {
        const proof *p = &t->proven[i];
        uint32_t pops = p->pops <= 0          ? HOTFN_POPS_NOTHING
                        : p->pops == p->words ? HOTFN_POPS_ALL
                                              : HOTFN_POPS_ONE;
        if (!p->holds || !(t->items[i].pub.flags & HOTFN_VERDICT_TIMED)) {
            continue;
        }
        if (pops == HOTFN_POPS_ONE && p->pops != 1) {
            withdraw_proof(t, i, HOTFN_REASON_RETURN_POPS);
        } else {
            t->items[i].pub.flags |= ((uint32_t)p->words | pops << 5) << 24;
            t->items[i].stored_arguments = get_kept_stores(p);
        }
    }
}

/* ---- Tail exits. */

/* A function can still be timed if all its tail jumps to functions that must not run inside the
 * timed call have the same target: the call ends at the jump, before the target runs
 * (arch/x86/emit_tail_exit.c). The target then finds the arguments of the original caller, so the
 * function must not have accessed its copies of them. */

static bool ends_with_unproven(const hfn_verdict *v)
{
    uint32_t reason = v->pub.flags >> 16 & 0xff;

    return reason == HOTFN_REASON_TAIL_UNPROVEN || reason == HOTFN_REASON_TAIL_CYCLE;
}

/* Whether the function has the name of a standard one.  `--with alloc` reads the result of such a
 * function when its timed call ends, so the call must end at the return. */
static bool has_standard_name(const hfn_analysis *a, uint32_t index)
{
    const char *name;

    for (uint32_t n = 0; (name = hotfn_functions_get_name(a->functions, index, n)) != NULL; n++) {
        if (hfn_is_standard(a, name)) {
            return true;
        }
    }
    return false;
}

/* Whether the jump is a call site in the function's own bytes, which can be redirected. */
static bool is_own_site(const hfn_analysis *a, const tail *jump)
{
    size_t low = hfn_count_below_u32(a->branches, a->branch_count, sizeof *a->branches,
                                     offsetof(hfn_branch, field), jump->field);

    return low < a->branch_count && a->branches[low].field == jump->field &&
           a->branches[low].target == jump->to && jump->field + 4 <= a->bodies[jump->from].end &&
           hfn_analysis_find_body(a, jump->field) == jump->from + 1;
}

/* Whether the target may use flags or data below the stack pointer that come with the jump.  A
 * target that is only jumped to is flagged because its entry may have unknown jumps; the trait
 * covers the known ones, so the flag alone shows nothing about this jump. */
static bool passes_more_than_registers(const timing *t, const tail *jump)
{
    uint32_t flags = t->items[jump->to].pub.flags;

    return (flags & HOTFN_VERDICT_FLAGS_LIVE) ||
           ((flags & HOTFN_VERDICT_RED_ZONE) &&
            (t->analysis->bodies[jump->to].traits & HFN_TRAIT_RED_ZONE));
}

static void record_tail_exit(timing *t, const tail *jump)
{
    proof *from = &t->proven[jump->from];
    const proof *to = &t->proven[jump->to];

    if (to->holds) { /* it may run inside the timed call */
        from->tail_words = from->tail_words < to->words ? to->words : from->tail_words;
        return;
    }
    if (!is_own_site(t->analysis, jump) || passes_more_than_registers(t, jump) ||
        (from->tail_target != 0 && from->tail_target != jump->to + 1)) {
        from->is_blocked = true;
    }
    from->tail_target = jump->to + 1;
}

static void resolve_tail_exits(timing *t)
{
    if (!t->analysis->arch->patching->has_tail_exits ||
        (t->analysis->flags & HOTFN_VERDICTS_NO_TAIL_EXIT)) {
        return;
    }
    for (size_t i = 0; i < t->tail_count; i++) {
        if (ends_with_unproven(&t->items[t->tails[i].from])) {
            record_tail_exit(t, &t->tails[i]);
        }
    }
    for (uint32_t i = 0; i < t->analysis->count; i++) {
        const proof *p = &t->proven[i];
        hfn_verdict *v = &t->items[i];
        if (!ends_with_unproven(v) || p->is_blocked || p->tail_target == 0 || p->words > 0 ||
            has_standard_name(t->analysis, i)) {
            continue;
        }
        set_timing_result(v, HOTFN_REASON_NONE);
        v->pub.flags |= (uint32_t)p->tail_words << 24;
        v->pub.tail_target = p->tail_target;
    }
}

/* ---- Programs that disable the TSC. */

static void find_tsc_disable(hfn_analysis *a)
{
    uint64_t at;

    for (uint32_t i = 0; i < a->code.count && a->arch->disables_tsc; i++) {
        const hfn_region *region = &a->code.regions[i];
        if (a->arch->disables_tsc(region->bytes, region->end - region->rva, &at)) {
            a->tsc_disable_rva = region->rva + at;
            return;
        }
    }
}

/* ---- Slots of the GOT. */

/* A slot may resolve to a function of another image.  For C names that function may use other
 * arguments; C++ names have one definition everywhere (C++17, [basic.def.odr]), and standard
 * names are trusted.  An own function with a standard name is proven nevertheless, because
 * programs may redefine it. */
static void record_slot(void *user, const hfn_image_slot *slot)
{
    hfn_analysis *a = user;
    bool has_one_definition = strncmp(slot->name, "_Z", 2) == 0;
    bool is_standard = hfn_is_standard(a, slot->name);
    bool is_certain = has_one_definition || is_standard;
    const hfn_slot item = { slot->place_rva, is_certain ? slot->target_rva : UINT64_MAX,
                            slot->target_rva, is_standard, hfn_pops_nothing(a, slot->name) };

    if (item.target != UINT64_MAX || item.is_standard || a->pops) {
        hfn_analysis_append(a, (void **)&a->slots, &a->slot_count, &a->slot_capacity, &item,
                            sizeof item);
    }
}

static int compare_slots(const void *a, const void *b)
{
    const hfn_slot *left = a, *right = b;

    return (left->rva > right->rva) - (left->rva < right->rva);
}

static void find_slots(hfn_analysis *a)
{
    hfn_image_each_slot(a->image, record_slot, a);
    if (a->slot_count > 0) {
        qsort(a->slots, a->slot_count, sizeof *a->slots, compare_slots);
    }
}

static void free_timing(timing *t)
{
    hfn_analysis *a = t->analysis;

    hfn_free_memory(&a->env, a->pops, a->count + 1);
    hfn_free_memory(&a->env, a->outlined, a->count + 1);
    a->pops = a->outlined = NULL;
    hfn_free_memory(&a->env, t->proven, (a->count + 1) * sizeof *t->proven);
    if (t->tails) {
        hfn_free_memory(&a->env, t->tails, t->tail_capacity * sizeof *t->tails);
    }
}

void hfn_timing_prove_all(hfn_analysis *a, hfn_verdict *items)
{
    timing t = { .analysis = a, .items = items };

    t.proven = hfn_allocate_zeroed(&a->env, (a->count + 1) * sizeof *t.proven);
    if (a->arch->pc_register) {
        a->pops = hfn_allocate_zeroed(&a->env, a->count + 1);
    }
    if (a->arch->is_never_shared) {
        a->outlined = hfn_allocate_zeroed(&a->env, a->count + 1);
    }
    if (!t.proven || (a->arch->pc_register && !a->pops) ||
        (a->arch->is_never_shared && !a->outlined)) {
        a->no_memory = true;
        free_timing(&t);
        return;
    }
    find_tsc_disable(a);
    find_slots(a);
    hfn_workers_run(
        a->threads, (a->count + BATCH - 1) / BATCH, prove_batch, &t,
        hfn_progress_begin(&a->env, "judging timing of", hfn_image_path(a->image), a->count));
    while (refuse_unproven(&t)) {
        ;
    }
    refuse_cycles(&t);
    while (refuse_unproven(&t)) {
        ;
    }
    resolve_arguments(&t);
    while (refuse_unproven(&t)) {
        ;
    }
    resolve_tail_exits(&t);
    free_timing(&t);
}
