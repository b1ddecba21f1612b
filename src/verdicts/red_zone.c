/* SPDX-License-Identifier: MIT */
/*
 * Finds functions that may be entered with data below the stack pointer.  At a call these bytes are
 * dead, but hand-written code may jump to a function that is also called, and leave data there for
 * it.  So a function keeps the red zone if code that uses it jumps or continues to the function,
 * directly or through others, and the function uses it too, or jumps to a function that does.  A
 * jump by a pointer may lead to every function whose address is taken or exported.
 */
#include "verdicts/analysis.h"
#include "verdicts/workers.h"

#define BATCH 256u
#define LINKS_MAX 3 /* pieces of code without a name between two functions */

static bool uses_red_zone(const hfn_analysis *a, const hfn_body *body)
{
    return a->arch->uses_red_zone(body->region->bytes + (body->rva - body->region->rva),
                                  body->end - body->rva);
}

static void add_entry(hfn_analysis *a, uint32_t index)
{
    if (!(a->bodies[index].traits & HFN_TRAIT_RED_ZONE)) {
        a->bodies[index].traits |= HFN_TRAIT_RED_ZONE;
        hfn_analysis_append(a, (void **)&a->red_zone, &a->red_zone_count, &a->red_zone_capacity,
                            &index, sizeof index);
    }
}

typedef struct pointer_targets {
    const hfn_analysis *analysis;
    uint8_t *use_red_zone; /* by function */
} pointer_targets;

static void read_batch(void *user, uint32_t item)
{
    const pointer_targets *t = user;
    const hfn_analysis *a = t->analysis;
    uint32_t from = item * BATCH, to = a->count - from < BATCH ? a->count : from + BATCH;

    for (uint32_t i = from; i < to; i++) {
        t->use_red_zone[i] =
            hfn_analysis_has_pointer(&a->bodies[i]) && uses_red_zone(a, &a->bodies[i]);
    }
}

/* The functions to which a jump by a pointer may lead. */
static void add_pointer_targets(hfn_analysis *a)
{
    pointer_targets t = { a, hfn_allocate_zeroed(&a->env, a->count + 1) };

    if (!t.use_red_zone) {
        a->no_memory = true;
        return;
    }
    hfn_workers_run(a->threads, (a->count + BATCH - 1) / BATCH, read_batch, &t,
                    (hfn_progress){ 0 });
    for (uint32_t i = 0; i < a->count; i++) {
        if (t.use_red_zone[i]) {
            add_entry(a, i);
        }
    }
    hfn_free_memory(&a->env, t.use_red_zone, a->count + 1);
}

/* A call overwrites the data below the stack pointer. */
static bool keeps_red_zone(const hfn_exit *leaving)
{
    return leaving->kind != HFN_EXIT_CALL && leaving->kind != HFN_EXIT_BEHIND;
}

/* Add the functions to which the code in [from, to) jumps or continues, also through `links` pieces
 * of code without a name. */
static void add_targets(hfn_analysis *a, uint64_t from, uint64_t to, uint32_t links)
{
    const hfn_body range = { .rva = from, .end = to };
    size_t count;
    const hfn_exit *exits = hfn_flow_exits(a, &range, &count);

    for (size_t i = 0; i < count; i++) {
        uint64_t target = exits[i].target;
        const hfn_region *region = hfn_code_region(&a->code, target);
        uint32_t index = hfn_analysis_find_around(a, target);
        if (!keeps_red_zone(&exits[i]) || target - from < to - from) {
            continue;
        }
        if (target == HFN_UNKNOWN_TARGET && !a->red_zone_by_pointer) {
            a->red_zone_by_pointer = true;
            add_pointer_targets(a);
        } else if (index != HFN_NO_FUNCTION) {
            add_entry(a, index);
        } else if (region && links > 0) {
            const hfn_dispatcher d = hfn_analysis_find_surroundings(a, region, target);
            add_targets(a, d.from, d.to, links - 1);
        }
    }
}

/* Whether the body jumps or continues to a function with the trait. */
static bool jumps_to_user(const hfn_analysis *a, const hfn_body *body)
{
    size_t count;
    const hfn_exit *exits = hfn_flow_exits(a, body, &count);

    for (size_t i = 0; i < count; i++) {
        uint32_t to = keeps_red_zone(&exits[i]) ? hfn_analysis_find_around(a, exits[i].target)
                                                : HFN_NO_FUNCTION;
        if (to != HFN_NO_FUNCTION && &a->bodies[to] != body &&
            (a->bodies[to].traits & HFN_TRAIT_RED_ZONE)) {
            return true;
        }
    }
    return false;
}

/* Keep the trait only where the data may be used. */
static void drop_unused(hfn_analysis *a)
{
    bool changed = true;

    for (size_t i = 0; i < a->red_zone_count; i++) {
        hfn_body *body = &a->bodies[a->red_zone[i]];
        if (!uses_red_zone(a, body)) {
            body->traits &= (uint16_t)~HFN_TRAIT_RED_ZONE;
        }
    }
    while (changed) {
        changed = false;
        for (size_t i = 0; i < a->red_zone_count; i++) {
            hfn_body *body = &a->bodies[a->red_zone[i]];
            if (!(body->traits & HFN_TRAIT_RED_ZONE) && jumps_to_user(a, body)) {
                body->traits |= HFN_TRAIT_RED_ZONE;
                changed = true;
            }
        }
    }
}

void hfn_red_zone_scan(hfn_analysis *a)
{
    uint64_t end = 0; /* of the code whose exits were followed */

    for (size_t i = 0; a->arch->uses_red_zone && i < a->exit_count; i++) {
        uint64_t at = a->exits[i].at;
        if (!keeps_red_zone(&a->exits[i]) || at < end) {
            continue;
        }
        const hfn_region *region = hfn_code_region(&a->code, at);
        const hfn_dispatcher d = hfn_analysis_find_surroundings(a, region, at);
        end = d.to;
        if (a->arch->uses_red_zone(region->bytes + (d.from - region->rva), d.to - d.from)) {
            add_targets(a, d.from, d.to, LINKS_MAX);
        }
    }
    for (size_t i = 0; i < a->red_zone_count; i++) { /* the loop adds more */
        const hfn_body *body = &a->bodies[a->red_zone[i]];
        if (body->kind != HOTFN_FUNCTION_PLT) {
            add_targets(a, body->rva, body->end, LINKS_MAX);
        }
    }
    drop_unused(a);
}
