/* SPDX-License-Identifier: MIT */
/*
 * Finds functions at whose entry flags are live (ARM64: x16 and x17, of which only reads at the
 * targets of indirect jumps and calls concern this file).  No ABI passes values in flags, but
 * hand-written code does, and so do outlined functions of clang: `call outlined; jne`, where the
 * outlined code only moves data.  Where flags are read after a call and not written in between, the
 * callee either sets them, which its own code shows, or leaves them live out; then the same holds
 * for its last calls, its tail jumps, and the code that it continues to, whether that has a name or
 * not.  An indirect call or jump may reach every function whose address is taken or exported.
 *
 * Compilers put other code behind a call that never returns; flags that are read there come from a
 * jump.  So unknown targets are followed only from calls that certainly return.  The code of other
 * images is expected to follow the ABI.
 */
#include "base/sort.h"
#include "verdicts/analysis.h"

#include <stdlib.h>

#define HOPS_MAX 4 /* transitions from one region to another */

/* Whether the bytes of region b continue those of region a. */
static bool is_joined(const hfn_region *a, const hfn_region *b)
{
    return (uintptr_t)b->bytes - (uintptr_t)a->bytes == b->rva - a->rva;
}

bool hfn_flags_live(const hfn_analysis *a, uint64_t rva, const hfn_flag_reads *reads)
{
    const hfn_region *begin = a->code.regions, *end = a->code.regions + a->code.count;

    for (int hop = 0; hop < HOPS_MAX; hop++) {
        const hfn_region *first = hfn_code_region(&a->code, rva), *last = first;
        if (!first) {
            return true;
        }
        while (first > begin && is_joined(first - 1, first)) {
            first--;
        }
        while (last + 1 < end && is_joined(last, last + 1)) {
            last++;
        }
        if (!a->arch->flags_live(first->bytes, last->end - first->rva, first->rva, rva, reads,
                                 &rva)) {
            return false;
        }
    }
    return true;
}

static void add_call(hfn_analysis *a, uint64_t target, uint64_t behind)
{
    const hfn_flags_call added = { target, behind, false };

    hfn_analysis_append(a, (void **)&a->flags_calls, &a->flags_call_count, &a->flags_call_capacity,
                        &added, sizeof added);
}

bool hfn_flags_record_call(hfn_analysis *a, uint64_t target, uint64_t behind)
{
    const hfn_flag_reads nowhere = { .at_return = false },
                         at_return = { .at_return = true, .at_tail = true },
                         at_targets = { .at_targets = true },
                         anywhere = { .at_return = true, .at_tail = true, .at_targets = true };
    hfn_flags_call call = { target, behind, true };

    if (!a->arch->stubs_change_flags || !hfn_flags_live(a, behind, &anywhere)) {
        return false;
    }
    if (target != HFN_UNKNOWN_TARGET && !hfn_code_region(&a->code, target)) { /* data */
        return false;
    }
    call.by_target = !hfn_flags_live(a, behind, &nowhere);
    if (!call.by_target || hfn_flags_live(a, behind, &at_targets)) {
        hfn_analysis_append(a, (void **)&a->flags_calls, &a->flags_call_count,
                            &a->flags_call_capacity, &call, sizeof call);
    }
    return call.by_target && hfn_flags_live(a, behind, &at_return);
}

void hfn_flags_add_reading_jump(hfn_analysis *a, uint64_t rva)
{
    hfn_analysis_append(a, (void **)&a->reading_jumps, &a->reading_jump_count,
                        &a->reading_jump_capacity, &rva, sizeof rva);
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

/* The code between functions that contains rva jumps by a pointer, or returns to a pushed address:
 * add each place in it to which one may lead. */
static void add_places_between(hfn_analysis *a, const hfn_region *region, uint64_t rva)
{
    const hfn_dispatcher d = hfn_analysis_find_surroundings(a, region, rva);
    uint32_t next = hfn_analysis_find_body(a, d.from);
    hfn_body *before = next > 0 ? &a->bodies[next - 1] : NULL;

    if (before && before->region == region) {
        if (before->traits & HFN_TRAIT_GAP_ADDED) {
            return;
        }
        before->traits |= HFN_TRAIT_GAP_ADDED;
    }
    for (uint64_t at = hfn_region_next_marked(region, d.from); at < d.to;
         at = hfn_region_next_marked(region, at + 1)) {
        add_call(a, at, HFN_RETURNS);
    }
}

/* Code that belongs to no function: add its successors, up to the end of its path or the next
 * function. */
static void walk_nameless(hfn_analysis *a, uint64_t at, uint64_t stop, uint64_t behind)
{
    const hfn_flag_reads at_return = { .at_return = true, .at_tail = true };
    const hfn_region *region = hfn_code_region(&a->code, at);
    hfn_instruction in = { .flow = HFN_FLOW_NEXT };
    uint64_t from = at;

    while (region && hfn_region_has(region, at) && at < stop && !hfn_ends_path(&in)) {
        if (!start_walk(a, region, at) ||
            !a->arch->decode(region->bytes + (at - region->rva), region->end - at, at, 0, &in)) {
            return;
        }
        at += in.length;
        bool is_call = in.flow == HFN_FLOW_CALL || in.flow == HFN_FLOW_CALL_INDIRECT;
        if (in.flow == HFN_FLOW_JUMP || in.flow == HFN_FLOW_JUMP_IF ||
            in.flow == HFN_FLOW_JUMP_INDIRECT || (is_call && hfn_flags_live(a, at, &at_return))) {
            bool is_indirect =
                in.flow == HFN_FLOW_JUMP_INDIRECT || in.flow == HFN_FLOW_CALL_INDIRECT;
            add_call(a, is_indirect ? HFN_UNKNOWN_TARGET : in.target, behind);
        }
    }
    if (at >= stop && !hfn_ends_path(&in)) {
        add_call(a, at, behind);
    }
    if (behind == HFN_RETURNS && region && from < at &&
        (in.flow == HFN_FLOW_JUMP_INDIRECT || in.flow == HFN_FLOW_RETURN)) {
        add_places_between(a, region, from);
    }
}

/* An indirect call may reach any function whose address is taken or exported, and code between
 * functions whose address is taken. */
static void add_pointer_targets(hfn_analysis *a)
{
    for (uint32_t i = 0; i < a->code.count; i++) {
        const hfn_region *region = &a->code.regions[i];
        for (uint64_t rva = hfn_region_next_marked(region, region->rva); rva < region->end;
             rva = hfn_region_next_marked(region, rva + 1)) {
            if ((hfn_region_marks(region, rva) & HFN_MARK_TAKEN) &&
                hfn_analysis_find_around(a, rva) == HFN_NO_FUNCTION) {
                add_call(a, rva, HFN_RETURNS);
            }
        }
    }
    for (uint32_t i = 0; i < a->count; i++) {
        if (hfn_analysis_has_pointer(&a->bodies[i])) {
            add_call(a, a->bodies[i].rva, HFN_RETURNS);
        }
    }
}

/* Flags are live out of the code at target; behind: HFN_RETURNS or HFN_MAY_NOT_RETURN. */
static void propagate_to(hfn_analysis *a, uint64_t target, uint64_t behind)
{
    uint32_t next = hfn_analysis_find_body(a, target + 1); /* begins behind the target */
    hfn_body *body = next > 0 ? &a->bodies[next - 1] : NULL;
    size_t count;

    if (!body || !body->region || target >= body->end) {
        walk_nameless(a, target, next < a->count ? a->bodies[next].rva : UINT64_MAX, behind);
        return;
    }
    if (body->traits & HFN_TRAIT_FLAGS_LIVE_OUT) {
        return;
    }
    body->traits |= HFN_TRAIT_FLAGS_LIVE_OUT;
    body->traits |= behind == HFN_RETURNS ? HFN_TRAIT_FLAGS_LIVE_AT_TAIL : 0;
    const hfn_exit *exits = hfn_flow_exits(a, body, &count);
    for (size_t i = 0; i < count; i++) {
        add_call(a, exits[i].target, behind);
    }
}

/* Whether the byte is in a gap between functions that contains data before it.  Calls are sorted,
 * so that each gap is decoded once. */
static bool is_among_data(hfn_analysis *a, const hfn_region *region, uint64_t rva)
{
    uint32_t next = hfn_analysis_find_body(a, rva + 1);
    const hfn_body *before =
        next > 0 && a->bodies[next - 1].region == region ? &a->bodies[next - 1] : NULL;
    uint64_t from = before ? before->max_end : region->rva;
    hfn_instruction in;

    if (a->gap_from != from) {
        a->gap_from = a->gap_read = from;
        a->gap_data = UINT64_MAX;
    }
    while (a->gap_read < rva && a->gap_data == UINT64_MAX) {
        uint64_t at = a->gap_read;
        if (a->arch->decode(region->bytes + (at - region->rva), region->end - at, at, 0, &in)) {
            a->gap_read += in.length;
        } else {
            a->gap_data = at;
        }
    }
    return a->gap_data < rva;
}

/* Whether the code behind a call certainly runs after it. */
static bool is_certain_return(hfn_analysis *a, uint64_t rva)
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

/* Whether code to which an indirect call or jump may lead reads flags (ARM64: x16 or x17).  Of
 * exported functions x86 needs those too whose address is not taken here; on ARM64, other images
 * reach them through a PLT, which writes x16 and x17. */
static bool reads_at_targets(const hfn_analysis *a)
{
    const hfn_flag_reads nowhere = { .at_return = false };

    for (uint32_t i = 0; a->arch->stubs_change_flags && i < a->count; i++) {
        if (hfn_analysis_has_pointer(&a->bodies[i]) &&
            hfn_flags_live(a, a->bodies[i].rva, &nowhere)) {
            return true;
        }
    }
    for (uint32_t i = 0; i < a->code.count; i++) {
        const hfn_region *region = &a->code.regions[i];
        for (uint64_t rva = hfn_region_next_marked(region, region->rva); rva < region->end;
             rva = hfn_region_next_marked(region, rva + 1)) {
            if ((hfn_region_marks(region, rva) & HFN_MARK_TAKEN) &&
                hfn_flags_live(a, rva, &nowhere)) {
                return true;
            }
        }
    }
    return false;
}

static bool is_behind_lower(const void *a, const void *b)
{
    return ((const hfn_flags_call *)a)->behind < ((const hfn_flags_call *)b)->behind;
}

/* Propagate the recorded calls that certainly return, or the others. */
static void propagate_calls(hfn_analysis *a, bool returns)
{
    bool pointers_added = false;

    for (size_t i = 0; i < a->flags_call_count; i++) { /* the loop adds more */
        hfn_flags_call call = a->flags_calls[i];
        if (call.by_target && !a->flag_reads.at_targets) {
            continue;
        }
        if (call.behind != HFN_RETURNS && call.behind != HFN_MAY_NOT_RETURN) {
            call.behind = is_certain_return(a, call.behind) ? HFN_RETURNS : HFN_MAY_NOT_RETURN;
            a->flags_calls[i].behind = call.behind;
        }
        if (returns != (call.behind == HFN_RETURNS)) {
            continue;
        }
        if (call.target != HFN_UNKNOWN_TARGET) {
            propagate_to(a, call.target, call.behind);
        } else if (returns && !pointers_added) {
            add_pointer_targets(a);
            pointers_added = true;
        }
    }
}

void hfn_flags_propagate(hfn_analysis *a)
{
    if (a->reading_jump_count > 0) {
        qsort(a->reading_jumps, a->reading_jump_count, sizeof *a->reading_jumps,
              hfn_analysis_compare_addresses);
    }
    a->flag_reads = (hfn_flag_reads){ .at_targets = reads_at_targets(a),
                                      .jumps = a->reading_jumps,
                                      .jump_count = a->reading_jump_count };
    if (!a->arch->stubs_change_flags) {
        return;
    }
    if (!hfn_sort_array(&a->env, (void **)&a->flags_calls, a->flags_call_capacity,
                        a->flags_call_count, sizeof *a->flags_calls, is_behind_lower)) {
        a->no_memory = true;
        return;
    }
    propagate_calls(a, true);
    propagate_calls(a, false);
}
