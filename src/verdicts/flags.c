/* SPDX-License-Identifier: MIT */
/*
 * Finds functions at whose entry flags are live.  No ABI passes values in flags, but hand-written
 * code does, and so do outlined functions of clang: `call outlined; jne`, where the outlined code
 * only moves data.  Where flags are read after a direct call and not written in between, the
 * callee either sets them, which its own code shows, or leaves them live out; then the same holds
 * for its last calls, its tail jumps, and the code that it continues to, whether that has a name
 * or not.  An indirect call behind which flags are read may reach every function whose address is
 * taken or exported.  Indirect tail jumps and calls of other images are not followed.
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

bool hfn_flags_record_call(hfn_analysis *a, uint64_t target, uint64_t behind)
{
    if (!a->arch->stubs_change_flags || !hfn_flags_live(a, behind, true)) {
        return false;
    }
    if (!hfn_flags_live(a, behind, false)) {
        return true;
    }
    add_flags_live_out(a, target);
    return false;
}

void hfn_flags_record_indirect_call(hfn_analysis *a, uint64_t behind)
{
    if (a->arch->stubs_change_flags && hfn_flags_live(a, behind, false)) {
        hfn_analysis_append(a, (void **)&a->flags_behind, &a->flags_behind_count,
                            &a->flags_behind_capacity, &behind, sizeof behind);
    }
}

/* Mark the byte as walked; false if it was before, or there is no memory. */
static bool start_walk(hfn_analysis *a, const hfn_region *region, uint64_t rva)
{
    uint64_t offset = rva - region->rva, bit = 1ull << offset % 64;

    if (!hfn_code_allocate_walked(&a->code, region, &a->env)) {
        a->no_memory = true;
        return false;
    }
    if (region->walked[offset / 64] & bit) {
        return false;
    }
    region->walked[offset / 64] |= bit;
    return true;
}

/* Code that belongs to no function: add its successors, up to the end of its path or the next
 * function. */
static void walk_nameless(hfn_analysis *a, uint64_t at, uint64_t stop)
{
    const hfn_region *region = hfn_code_region(&a->code, at);
    hfn_instruction in = { .flow = HFN_FLOW_NEXT };

    while (region && hfn_region_has(region, at) && at < stop && !hfn_ends_path(&in)) {
        if (!start_walk(a, region, at) ||
            !a->arch->decode(region->bytes + (at - region->rva), region->end - at, at, 0, &in)) {
            return;
        }
        at += in.length;
        if (in.flow == HFN_FLOW_JUMP || in.flow == HFN_FLOW_JUMP_IF ||
            (in.flow == HFN_FLOW_CALL && hfn_flags_live(a, at, true))) {
            add_flags_live_out(a, in.target);
        }
    }
    if (at >= stop && !hfn_ends_path(&in)) {
        add_flags_live_out(a, at);
    }
}

static void propagate_to(hfn_analysis *a, uint64_t target)
{
    uint32_t next = hfn_analysis_find_body(a, target + 1); /* begins behind the target */
    hfn_body *body = next > 0 ? &a->bodies[next - 1] : NULL;
    size_t count;

    if (!body || !body->region || target >= body->end) {
        walk_nameless(a, target, next < a->count ? a->bodies[next].rva : UINT64_MAX);
        return;
    }
    if (body->traits & HFN_TRAIT_FLAGS_LIVE_OUT) {
        return;
    }
    body->traits |= HFN_TRAIT_FLAGS_LIVE_OUT;
    const hfn_exit *exits = hfn_flow_exits(a, body, &count);
    for (size_t i = 0; i < count; i++) {
        add_flags_live_out(a, exits[i].target);
    }
}

/* Whether the byte is in a gap between functions that contains data. */
static bool is_among_data(const hfn_analysis *a, const hfn_region *region, uint64_t rva)
{
    uint32_t next = hfn_analysis_find_body(a, rva + 1);
    const hfn_body *before =
        next > 0 && a->bodies[next - 1].region == region ? &a->bodies[next - 1] : NULL;
    uint64_t at = before ? before->max_end : region->rva;
    hfn_instruction in;

    while (at < rva) {
        if (!a->arch->decode(region->bytes + (at - region->rva), region->end - at, at, 0, &in)) {
            return true;
        }
        at += in.length;
    }
    return false;
}

/* Whether the code behind an indirect call runs after it.  Behind a call that never returns is the
 * target of a jump, which sets the flags that are read there. */
static bool is_certain_return(const hfn_analysis *a, uint64_t rva)
{
    const hfn_region *region = hfn_code_region(&a->code, rva);
    hfn_instruction in = { .is_padding = true };

    if (!region || is_among_data(a, region, rva)) {
        return false;
    }
    while (hfn_region_has(region, rva) && in.is_padding) {
        if ((hfn_region_marks(region, rva) & HFN_MARK_JUMPED) ||
            !a->arch->decode(region->bytes + (rva - region->rva), region->end - rva, rva, 0, &in)) {
            return false;
        }
        rva += in.length;
    }
    return true;
}

/* An indirect call may reach any function whose address is taken or exported. */
static void add_pointer_targets(hfn_analysis *a)
{
    for (uint32_t i = 0; i < a->count; i++) {
        const hfn_body *body = &a->bodies[i];
        if (body->region && ((body->flags & HOTFN_FUNCTION_EXPORTED) ||
                             (hfn_region_marks(body->region, body->rva) & HFN_MARK_TAKEN))) {
            add_flags_live_out(a, body->rva);
        }
    }
}

void hfn_flags_propagate(hfn_analysis *a)
{
    for (size_t i = 0; i < a->flags_behind_count; i++) {
        if (is_certain_return(a, a->flags_behind[i])) {
            add_pointer_targets(a);
            break;
        }
    }
    for (size_t i = 0; i < a->flags_live_out_count; i++) { /* the loop adds more */
        propagate_to(a, a->flags_live_out[i]);
    }
}
