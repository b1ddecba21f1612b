/* SPDX-License-Identifier: MIT */
/*
 * Finds functions at whose entry flags are live.  No ABI passes values in flags, but hand-written
 * code does, and so do outlined functions of clang: `call outlined; jne`, where the outlined code
 * only moves data.  Where flags are read after a direct call and not written in between, the
 * callee either sets them, which its own code shows, or leaves them live out; then the same holds
 * for its last calls and tail jumps.  Indirect calls and calls of other images are not followed.
 */
#include "verdicts/analysis.h"

#define HOPS_MAX 4 /* transitions from one region to another */

bool hfn_flags_live(const hfn_analysis *a, uint64_t rva, bool at_return)
{
    for (int hop = 0; hop < HOPS_MAX; hop++) {
        const hfn_region *region = hfn_code_region(&a->code, rva);
        if (!region) {
            return true;
        }
        if (!a->arch->flags_live(region->bytes, region->end - region->rva, region->rva, rva,
                                 at_return, &rva)) {
            return false;
        }
    }
    return true;
}

static void add_flags_live_out(hfn_analysis *a, uint64_t target)
{
    hfn_analysis_append(a, (void **)&a->flags_live_out, &a->flags_live_out_count,
                        &a->flags_live_out_capacity, &target, sizeof target);
}

void hfn_flags_record_call(hfn_analysis *a, uint64_t target, uint64_t behind)
{
    if (a->arch->stubs_change_flags && hfn_flags_live(a, behind, false)) {
        add_flags_live_out(a, target);
    }
}

/* Add the targets of the function's tail jumps, and of its calls after which no flag is written. */
static void read_body(hfn_analysis *a, const hfn_body *body)
{
    hfn_instruction in;

    for (uint64_t at = body->rva, next; at < body->end; at = next) {
        next = hfn_analysis_next_start(a, at);
        if (!a->arch->decode(body->region->bytes + (at - body->region->rva), body->region->end - at,
                             at, 0, &in)) {
            continue;
        }
        next = at + in.length;
        bool leaves = (in.flow == HFN_FLOW_JUMP || in.flow == HFN_FLOW_JUMP_IF) &&
                      (in.target < body->rva || in.target >= body->end);
        if (leaves || (in.flow == HFN_FLOW_CALL && hfn_flags_live(a, next, true))) {
            add_flags_live_out(a, in.target);
        }
    }
}

void hfn_flags_propagate(hfn_analysis *a)
{
    for (size_t i = 0; i < a->flags_live_out_count; i++) { /* the loop adds more */
        uint64_t target = a->flags_live_out[i];
        uint32_t index = hfn_analysis_find_body(a, target);
        if (index == a->count || a->bodies[index].rva != target) {
            if (index == 0) {
                continue;
            }
            index--; /* behind its landing pad, or inside it */
        }
        hfn_body *body = &a->bodies[index];
        if (!body->region || target >= body->end || (body->traits & HFN_TRAIT_FLAGS_LIVE_OUT)) {
            continue;
        }
        body->traits |= HFN_TRAIT_FLAGS_LIVE_OUT;
        read_body(a, body);
    }
}
