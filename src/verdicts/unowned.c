/* SPDX-License-Identifier: MIT */
/*
 * Unowned fragments: fragments with an indirect jump that may target any address.  The function
 * that they belong to may have set up the jump, so the targets may lie in it; only the jumps into
 * the fragment show which function that is.  Every function that jumps there is treated as if the
 * indirect jump were its own.  Such fragments are rare, so a second pass over all code is
 * affordable.
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

void hfn_unowned_scan(hfn_analysis *a)
{
    for (uint32_t i = 0; a->unowned_count > 0 && i < a->count; i++) {
        if (a->bodies[i].region) {
            read_body(a, &a->bodies[i]);
        }
    }
}
