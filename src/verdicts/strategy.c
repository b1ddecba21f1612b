/* SPDX-License-Identifier: MIT */
/*
 * Chooses the cheapest strategy for one function: the patch must not contain bytes that other
 * code reaches, and the covered instructions must be movable.  The first reason against a plain
 * jump is reported if no shorter patch is possible either.
 */
#include "verdicts/analysis.h"
#include "verdicts/call_sites.h"

#define LOWEST_ADDRESS 0x10000u /* lowest mappable address: vm.mmap_min_addr      */

/* The function for which a strategy is being chosen. */
typedef struct candidate {
    const hfn_analysis *analysis;
    uint32_t index;
    const hfn_body *function;
    uint64_t site;
    const uint8_t *bytes;    /* at the site                                         */
    uint64_t size;           /* of bytes, up to the end of the region's tail         */
    uint64_t body;           /* bytes from the site to the function's end           */
    uint32_t jump_bytes;     /* size of a jump with full reach                      */
    uint8_t pc_register;     /* set to its return address by a covered call          */
    uint32_t limit;          /* bytes at the site that may be overwritten, at most a jump     */
    uint32_t reason, offset; /* why limit is not higher; offset of the cause from the entry */
    hfn_verdict *out;
} candidate;

static void record_reason(candidate *c, uint32_t reason, uint64_t offset)
{
    if (c->reason != HOTFN_REASON_NONE) {
        return;
    }
    c->reason = reason;
    c->offset = offset < UINT32_MAX ? (uint32_t)offset : UINT32_MAX;
}

static void lower_limit(candidate *c, uint32_t limit, uint32_t reason, uint64_t offset)
{
    if (limit >= c->limit) {
        return;
    }
    c->limit = limit;
    c->reason = HOTFN_REASON_NONE;
    record_reason(c, reason, offset);
}

/* A landing pad of the exception tables can follow any instruction that does not continue.  The
 * tables are not read; such a place limits the patch. */
static void limit_by_landing_pads(candidate *c)
{
    hfn_instruction in;
    uint32_t at = 0;

    while ((c->function->flags & HOTFN_FUNCTION_HAS_LSDA) && at < c->limit && at < c->body) {
        if (!c->analysis->arch->decode(c->bytes + at, c->size - at, c->site + at, 0, &in)) {
            return;
        }
        at += in.length;
        if ((in.flow == HFN_FLOW_JUMP || in.flow == HFN_FLOW_RETURN || in.flow == HFN_FLOW_STOP ||
             in.flow == HFN_FLOW_JUMP_INDIRECT) &&
            at < c->body) {
            lower_limit(c, at, HOTFN_REASON_JUMP_INTO_PATCH, c->out->pub.patch_offset + at);
        }
    }
}

static void find_limit(candidate *c)
{
    const hfn_analysis *a = c->analysis;
    uint32_t offset = c->out->pub.patch_offset;
    uint64_t next = c->index + 1 < a->count ? a->bodies[c->index + 1].rva : UINT64_MAX, read;

    c->limit = c->jump_bytes;
    if (c->size < c->limit) {
        lower_limit(c, (uint32_t)c->size, HOTFN_REASON_TOO_SHORT, offset + c->size);
    }
    for (uint32_t k = a->arch->patching->unit_bytes; k < c->limit;
         k += a->arch->patching->unit_bytes) {
        if (c->site + k == next) {
            lower_limit(c, k,
                        hfn_body_is_closed(a, c->function) ? HOTFN_REASON_TOO_SHORT
                                                           : HOTFN_REASON_OVERLAP,
                        offset + k);
        } else if (c->site + k < c->function->region->end &&
                   hfn_region_marks(c->function->region, c->site + k)) {
            lower_limit(c, k, k < c->body ? HOTFN_REASON_JUMP_INTO_PATCH : HOTFN_REASON_TOO_SHORT,
                        offset + k);
        }
    }
    if (hfn_fixed_reason(a, c->site, c->site + c->limit, &read) == HOTFN_REASON_READ) {
        lower_limit(c, (uint32_t)(read - c->site), HOTFN_REASON_READ, offset + (read - c->site));
    }
    if ((c->function->traits & HFN_TRAIT_UNBOUNDED) &&
        a->arch->patching->unit_bytes < c->jump_bytes) {
        lower_limit(c, 1, HOTFN_REASON_UNBOUNDED_TABLE, c->function->unbounded_at);
    }
    limit_by_landing_pads(c);
}

static void refuse_move(candidate *c, hfn_move_result result, uint32_t offset)
{
    static const uint32_t reasons[] = {
        [HFN_MOVE_CALL] = HOTFN_REASON_CALL_IN_PATCH,
        [HFN_MOVE_IMPOSSIBLE] = HOTFN_REASON_CANNOT_MOVE,
        [HFN_MOVE_UNDECODABLE] = HOTFN_REASON_UNDECODABLE,
        [HFN_MOVE_TOO_LONG] = HOTFN_REASON_CANNOT_MOVE,
    };

    record_reason(c, reasons[result], c->out->pub.patch_offset + offset);
}

/* Whether none of the bytes at the site is fixed. */
static bool may_move_bytes(candidate *c, uint32_t byte_count)
{
    uint64_t at = c->site;
    uint32_t reason = hfn_fixed_reason(c->analysis, c->site, c->site + byte_count, &at);

    if (reason != HOTFN_REASON_NONE) {
        record_reason(c, reason, c->out->pub.patch_offset + (at - c->site));
    }
    return reason == HOTFN_REASON_NONE;
}

/* Whether a landing pad of the function, or a signal handler, knows faults of these instructions by
 * their addresses. */
static bool is_caught(candidate *c, uint32_t byte_count)
{
    uint64_t at;
    uint32_t offset;

    if (hfn_call_sites_catch(c->analysis, c->index, c->site, c->site + byte_count, &at)) {
        offset = (uint32_t)(at - c->site);
    } else if (!hfn_fault_ranges_know(c->analysis, c->function->region, c->site, byte_count,
                                      &offset)) {
        return false;
    }
    record_reason(c, HOTFN_REASON_FAULT_KNOWN, c->out->pub.patch_offset + offset);
    return true;
}

/* Whether the instructions that a patch of patch_bytes covers can be moved. */
static bool can_move(candidate *c, uint32_t patch_bytes)
{
    uint32_t wanted = patch_bytes < c->body ? patch_bytes : (uint32_t)c->body;
    uint32_t offset = 0;
    hfn_moved moved;

    hfn_move_result result = c->analysis->arch->move(c->bytes, c->size, c->site, wanted,
                                                     c->pc_register, &moved, &offset);
    if (result != HFN_MOVED) {
        refuse_move(c, result, offset);
        return false;
    }
    if (moved.original_bytes > c->body) {
        record_reason(c, HOTFN_REASON_UNDECODABLE, c->out->pub.patch_offset + c->body);
        return false;
    }
    if (!may_move_bytes(c, moved.original_bytes) || is_caught(c, moved.original_bytes)) {
        return false;
    }
    if (!hfn_relocated_add_fixups(&c->analysis->relocated, c->bytes, c->site, &moved)) {
        record_reason(c, HOTFN_REASON_RELOCATED, c->out->pub.patch_offset);
        return false;
    }
    c->out->covered_bytes = moved.original_bytes;
    c->out->pc_register = (uint8_t)(c->pc_register + 1);
    return true;
}

/* Reserve the padding that the patch needs after the function's end. */
static bool reserve_padding(candidate *c, uint32_t patch_bytes)
{
    if (patch_bytes <= c->body ||
        hfn_padding_reserve(c->analysis, c->index, c->function->end, c->site + patch_bytes)) {
        return true;
    }
    record_reason(c, HOTFN_REASON_TOO_SHORT, c->out->pub.patch_offset + c->body);
    return false;
}

static bool accept_strategy(candidate *c, uint32_t strategy, uint32_t patch_bytes)
{
    c->out->pub.verdict = HOTFN_VERDICT_HOOKABLE;
    c->out->pub.strategy = strategy;
    c->out->pub.patch_bytes = patch_bytes;
    return true;
}

static bool try_retarget(candidate *c)
{
    hfn_moved moved;

    if (c->limit < c->jump_bytes || c->body < c->jump_bytes ||
        !c->analysis->arch->retarget(c->bytes, c->size, c->site, &moved)) {
        return false;
    }
    c->out->covered_bytes = moved.original_bytes;
    return accept_strategy(c, HOTFN_STRATEGY_RETARGET, c->jump_bytes);
}

/* Whether the direct call at site + offset is executed exactly once for each execution of the
 * entry. */
static bool is_call_always_executed(const candidate *c, uint32_t offset)
{
    const hfn_analysis *a = c->analysis;
    uint64_t end = c->site + offset + c->jump_bytes, unused;
    uint64_t next = c->index + 1 < a->count ? a->bodies[c->index + 1].rva : UINT64_MAX;

    if (end > c->function->end || next < end || (c->function->traits & HFN_TRAIT_UNBOUNDED)) {
        return false;
    }
    for (uint64_t at = c->site + 1; at < end; at++) {
        if (hfn_region_marks(c->function->region, at)) {
            return false;
        }
    }
    return hfn_fixed_reason(a, end - c->jump_bytes, end, &unused) == HOTFN_REASON_NONE &&
           !hfn_relocated_overlaps(&a->relocated, end - c->jump_bytes, end);
}

/* The bytes of prefixes without effect: linkers relax `call [rip + d]` to `addr32 call`. */
static uint32_t count_prefix_bytes(const hfn_instruction *in)
{
    bool is_call = in->relative_bytes == 4 && in->length == in->relative_at + 4u;

    return is_call && in->relative_at > 1 ? in->relative_at - 1u : 0;
}

/* Retarget a call that is among the covered bytes. */
static bool try_retarget_call(candidate *c)
{
    const hfn_arch *arch = c->analysis->arch;
    hfn_instruction in = { .flow = HFN_FLOW_NEXT };
    hfn_moved moved;
    uint32_t at = 0;

    while (at < c->jump_bytes && in.flow == HFN_FLOW_NEXT) {
        if (!arch->decode(c->bytes + at, c->size - at, c->site + at, 0, &in)) {
            return false;
        }
        at += in.flow == HFN_FLOW_NEXT ? in.length : 0;
    }
    if (at >= c->jump_bytes || in.flow != HFN_FLOW_CALL) {
        return false;
    }
    at += count_prefix_bytes(&in);
    if (!is_call_always_executed(c, at) ||
        !arch->retarget(c->bytes + at, c->size - at, c->site + at, &moved)) {
        return false;
    }
    c->site = c->out->site_rva = c->site + at;
    c->out->pub.patch_offset += at;
    c->out->covered_bytes = moved.original_bytes;
    return accept_strategy(c, HOTFN_STRATEGY_RETARGET, c->jump_bytes);
}

static bool try_jump(candidate *c)
{
    if (c->limit < c->jump_bytes || !can_move(c, c->jump_bytes) ||
        !reserve_padding(c, c->jump_bytes)) {
        return false;
    }
    return accept_strategy(
        c, c->body < c->jump_bytes ? HOTFN_STRATEGY_JUMP_PAD : HOTFN_STRATEGY_JUMP, c->jump_bytes);
}

static bool try_island(candidate *c)
{
    hfn_body *function = &c->analysis->bodies[c->index];
    uint8_t padding_used = function->padding_used;
    uint32_t short_bytes = c->analysis->arch->patching->short_jump_bytes;
    uint64_t from = c->site + short_bytes;

    if (short_bytes == 0 || c->limit < short_bytes || !can_move(c, short_bytes) ||
        !reserve_padding(c, short_bytes)) {
        return false;
    }
    uint64_t low = from > 128 ? from - 128 : 0;
    uint64_t island = hfn_padding_find(c->analysis, low, from + 127, c->jump_bytes);
    if (island == UINT64_MAX) {
        function->padding_used = padding_used;
        if (c->reason == HOTFN_REASON_TOO_SHORT) {
            c->reason = HOTFN_REASON_NO_ISLAND;
        }
        return false;
    }
    c->out->island_rva = island;
    return accept_strategy(c, HOTFN_STRATEGY_ISLAND, short_bytes);
}

/* Whether a jump with these fixed bits reaches memory outside the image. */
static bool target_exists(const candidate *c, uint32_t fixed, uint32_t mask)
{
    const hotfn_image_info *info = &c->analysis->info;
    int64_t from = (int64_t)(c->site + c->jump_bytes) + (int32_t)fixed;
    int64_t to = from + (int64_t)(uint32_t)~mask;
    if (c->analysis->arch->pointer_bytes == 4) {
        return true; /* every displacement reaches some address modulo 4 GiB */
    }
    int64_t lowest =
        c->analysis->fixed_place ? (int64_t)LOWEST_ADDRESS - (int64_t)info->link_base : INT64_MIN;

    return (from < 0 && to >= lowest) || to >= (int64_t)info->loaded_bytes;
}

/* The bytes after the patch become part of the jump, so nothing else may change them. */
static bool try_pun(candidate *c, uint32_t patch_bytes)
{
    uint32_t fixed = 0, mask = 0;
    hfn_body *function = &c->analysis->bodies[c->index];
    uint8_t padding_used = function->padding_used;
    uint64_t next = c->index + 1 < c->analysis->count ? function[1].rva : UINT64_MAX;

    if (c->limit < patch_bytes || c->size < c->jump_bytes || next < c->site + c->jump_bytes ||
        hfn_relocated_overlaps(&c->analysis->relocated, c->site + patch_bytes,
                               c->site + c->jump_bytes)) {
        return false;
    }
    for (uint32_t i = patch_bytes; i < c->jump_bytes; i++) {
        fixed |= (uint32_t)c->bytes[i] << (8 * (i - 1));
        mask |= 0xFFu << (8 * (i - 1));
    }
    if (!target_exists(c, fixed, mask) || !can_move(c, patch_bytes) ||
        !may_move_bytes(c, c->jump_bytes) || !reserve_padding(c, c->jump_bytes)) {
        function->padding_used = padding_used;
        return false;
    }
    c->out->pun_fixed = fixed;
    c->out->pun_mask = mask;
    return accept_strategy(c, HOTFN_STRATEGY_PUN, patch_bytes);
}

static bool try_int3(candidate *c)
{
    return (c->analysis->flags & HOTFN_VERDICTS_ALLOW_INT3) && can_move(c, 1) &&
           accept_strategy(c, HOTFN_STRATEGY_INT3, 1);
}

/* The scratch register at the site, plus 1; 0: none. */
static uint8_t find_scratch_register(const candidate *c)
{
    const hfn_region *region = c->function->region;
    const hfn_arch *arch = c->analysis->arch;
    uint8_t number = arch->find_scratch_register
                         ? arch->find_scratch_register(region->bytes, region->end - region->rva,
                                                       region->rva, c->site)
                         : HFN_NO_REGISTER;

    return number == HFN_NO_REGISTER ? 0 : number + 1;
}

/* i386: the register that a covered call sets to its return address and nothing else; such a call
 * can be moved. HFN_NO_REGISTER if there is none. */
static uint8_t find_pc_call(const candidate *c)
{
    const hfn_analysis *a = c->analysis;
    hfn_instruction in = { .flow = HFN_FLOW_NEXT };

    if (!a->arch->pc_register) {
        return HFN_NO_REGISTER;
    }
    for (uint32_t at = 0; at < c->jump_bytes && in.flow == HFN_FLOW_NEXT; at += in.length) {
        if (!a->arch->decode(c->bytes + at, c->size - at, c->site + at, 0, &in)) {
            return HFN_NO_REGISTER;
        }
    }
    const hfn_region *region =
        in.flow == HFN_FLOW_CALL ? hfn_code_region(&a->code, in.target) : NULL;
    return region ? a->arch->pc_register(region->bytes + (in.target - region->rva),
                                         region->end - in.target)
                  : HFN_NO_REGISTER;
}

static candidate begin_candidate(const hfn_analysis *a, uint32_t index, hfn_verdict *out)
{
    const hfn_body *body = &a->bodies[index];
    const uint8_t *bytes = body->region->bytes + (body->rva - body->region->rva);
    uint64_t size = body->region->tail_end - body->rva;
    candidate c = { .analysis = a,
                    .index = index,
                    .function = body,
                    .jump_bytes = a->arch->patching->jump_bytes,
                    .out = out };
    hfn_instruction in;

    if (a->arch->decode(bytes, size, body->rva, 0, &in) && in.is_landing_pad &&
        in.length < body->end - body->rva) {
        out->pub.patch_offset = in.length;
        out->pub.flags |= HOTFN_VERDICT_LANDING_PAD;
        if (in.signs_return) {
            out->pub.flags |=
                HOTFN_VERDICT_RETURN_SIGNED | (in.with_key_b ? HOTFN_VERDICT_KEY_B : 0);
        }
    }
    c.site = out->site_rva = body->rva + out->pub.patch_offset;
    c.bytes = bytes + out->pub.patch_offset;
    c.size = size - out->pub.patch_offset;
    c.body = body->end - c.site;
    c.pc_register = find_pc_call(&c);
    if (a->arch->decode(c.bytes, c.size, c.site, 0, &in) && in.with_key_b) {
        out->pub.flags |= HOTFN_VERDICT_KEY_B; /* it is moved */
    }
    find_limit(&c);
    return c;
}

static void finish_verdict(const candidate *c)
{
    hfn_verdict *out = c->out;

    if (out->pub.verdict == HOTFN_VERDICT_HOOKABLE) {
        hfn_flag_reads reads = c->analysis->flag_reads;
        reads.at_entry = true;
        reads.at_return = c->function->traits & HFN_TRAIT_FLAGS_LIVE_OUT;
        reads.at_tail = c->function->traits & HFN_TRAIT_FLAGS_LIVE_AT_TAIL;
        if (hfn_flags_live(c->analysis, c->site, &reads)) {
            out->pub.flags |= HOTFN_VERDICT_FLAGS_LIVE;
        }
        out->scratch = find_scratch_register(c);
        return;
    }
    *out = (hfn_verdict){ .pub = { .size = (uint32_t)sizeof out->pub,
                                   .verdict = HOTFN_VERDICT_REFUSED,
                                   .reason = c->reason,
                                   .offset = c->offset,
                                   .flags = out->pub.flags,
                                   .patch_offset = out->pub.patch_offset },
                          .site_rva = out->site_rva };
}

bool hfn_strategy_choose_local(const hfn_analysis *a, uint32_t index, hfn_verdict *out)
{
    candidate c = begin_candidate(a, index, out);

    if (!(c.pc_register == HFN_NO_REGISTER && try_retarget(&c)) && !try_jump(&c) &&
        !try_retarget(&c) && !try_retarget_call(&c)) {
        return false;
    }
    finish_verdict(&c);
    return true;
}

void hfn_strategy_choose_any(const hfn_analysis *a, uint32_t index, hfn_verdict *out)
{
    candidate c = begin_candidate(a, index, out);
    bool found = try_jump(&c) || try_island(&c);

    /* Shorter patches exist only where instructions are smaller than a jump. */
    for (uint32_t patch_bytes = c.jump_bytes - 1;
         patch_bytes >= a->arch->patching->unit_bytes && !found; patch_bytes--) {
        found = try_pun(&c, patch_bytes);
    }
    if (!found && a->arch->patching->unit_bytes < c.jump_bytes) {
        try_int3(&c);
    }
    finish_verdict(&c);
}
