/* SPDX-License-Identifier: MIT */
/*
 * Finds functions that may be entered with data below the stack pointer.  At a call these bytes are
 * dead, but hand-written code may jump to a function that is also called, and leave data there for
 * it.  So a function keeps the red zone if code that uses it jumps or continues to the function,
 * directly or through others, and the function uses it too, or jumps to a function that does.
 */
#include "verdicts/analysis.h"

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

/* A call overwrites the data below the stack pointer. */
static bool keeps_red_zone(const hfn_exit *leaving)
{
    return leaving->kind != HFN_EXIT_CALL && leaving->kind != HFN_EXIT_BEHIND;
}

/* Add the functions that the body jumps to or continues to, if `adds`.  Returns whether one of them
 * had the trait before. */
static bool follow_jumps(hfn_analysis *a, const hfn_body *body, bool adds)
{
    size_t count;
    const hfn_exit *exits = hfn_flow_exits(a, body, &count);
    bool found = false;

    for (size_t i = 0; i < count; i++) {
        uint32_t to = keeps_red_zone(&exits[i]) ? hfn_analysis_find_around(a, exits[i].target)
                                                : HFN_NO_FUNCTION;
        if (to != HFN_NO_FUNCTION && a->bodies[to].region && &a->bodies[to] != body) {
            found |= (a->bodies[to].traits & HFN_TRAIT_RED_ZONE) != 0;
            if (adds) {
                add_entry(a, to);
            }
        }
    }
    return found;
}

/* Keep the trait only where the data may be used. */
static void drop_unused(hfn_analysis *a)
{
    bool changed = true;

    for (size_t i = 0; i < a->red_zone_count; i++) {
        hfn_body *body = &a->bodies[a->red_zone[i]];
        if (!uses_red_zone(a, body)) {
            body->traits &= (uint8_t)~HFN_TRAIT_RED_ZONE;
        }
    }
    while (changed) {
        changed = false;
        for (size_t i = 0; i < a->red_zone_count; i++) {
            hfn_body *body = &a->bodies[a->red_zone[i]];
            if (!(body->traits & HFN_TRAIT_RED_ZONE) && follow_jumps(a, body, false)) {
                body->traits |= HFN_TRAIT_RED_ZONE;
                changed = true;
            }
        }
    }
}

void hfn_red_zone_scan(hfn_analysis *a)
{
    uint64_t done = 0; /* the exits before this address were followed */

    for (size_t i = 0; a->arch->uses_red_zone && i < a->exit_count; i++) {
        const hfn_exit *leaving = &a->exits[i];
        uint32_t from = keeps_red_zone(leaving) && leaving->at >= done
                            ? hfn_analysis_find_around(a, leaving->at)
                            : HFN_NO_FUNCTION;
        if (from == HFN_NO_FUNCTION) {
            continue;
        }
        done = a->bodies[from].end;
        if (a->bodies[from].region && uses_red_zone(a, &a->bodies[from])) {
            follow_jumps(a, &a->bodies[from], true);
        }
    }
    for (size_t i = 0; i < a->red_zone_count; i++) { /* the loop adds more */
        follow_jumps(a, &a->bodies[a->red_zone[i]], true);
    }
    drop_unused(a);
}
