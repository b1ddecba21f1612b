/* SPDX-License-Identifier: MIT */
/*
 * Unowned fragments: fragments with an indirect jump that may target any address.  The function
 * that they belong to may have set up the jump, so the targets may lie in it; only the jumps into
 * the fragment show which function that is.  Every function that jumps there is treated as if the
 * indirect jump were its own.  Only functions with a jump to such a fragment are decoded again.
 */
#include "verdicts/analysis.h"

static bool targets_unowned(const hfn_analysis *a, uint64_t target)
{
    for (size_t i = 0; i < a->unowned_count; i++) {
        if (target - a->unowned[i].from < a->unowned[i].to - a->unowned[i].from) {
            return true;
        }
    }
    return false;
}

static void read_body(const hfn_analysis *a, hfn_body *body)
{
    const hfn_region *region = body->region;
    hfn_instruction in;

    for (uint64_t at = body->rva, next; at < body->end; at = next) {
        next = hfn_analysis_next_start(a, at);
        if (!a->arch->decode(region->bytes + (at - region->rva), region->end - at, at, 0, &in)) {
            continue;
        }
        next = at + in.length;
        if ((in.flow != HFN_FLOW_JUMP && in.flow != HFN_FLOW_JUMP_IF) ||
            !targets_unowned(a, in.target)) {
            continue;
        }
        body->traits |= HFN_TRAIT_UNBOUNDED;
        body->unbounded_at = (uint32_t)(at - body->rva);
        return;
    }
}

static bool overlaps_unowned(const hfn_analysis *a, const hfn_body *body)
{
    for (size_t i = 0; i < a->unowned_count; i++) {
        if (a->unowned[i].from < body->end && body->rva < a->unowned[i].to) {
            return true;
        }
    }
    return false;
}

/* May the body jump to an unowned fragment?  Jumps that leave functions are known, where they are
 * recorded at all.  Code that two functions share was decoded from one entry only. */
static bool may_jump_to_unowned(const hfn_analysis *a, uint32_t index)
{
    const hfn_body *body = &a->bodies[index];
    size_t count;
    const hfn_exit *exits = hfn_flow_exits(a, body, &count);

    if ((!a->arch->stubs_change_flags && !a->arch->uses_red_zone) ||
        (index + 1 < a->count && a->bodies[index + 1].rva < body->end) ||
        overlaps_unowned(a, body)) {
        return true;
    }
    for (size_t i = 0; i < count; i++) {
        if (exits[i].kind == HFN_EXIT_JUMP && targets_unowned(a, exits[i].target)) {
            return true;
        }
    }
    return false;
}

void hfn_unowned_scan(hfn_analysis *a)
{
    for (uint32_t i = 0; a->unowned_count > 0 && i < a->count; i++) {
        if (a->bodies[i].region && may_jump_to_unowned(a, i)) {
            read_body(a, &a->bodies[i]);
        }
    }
}
