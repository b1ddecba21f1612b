/* SPDX-License-Identifier: MIT */
/*
 * The ladder: for one function, the cheapest patch whose bytes nobody else reaches and whose
 * instructions can move.  The first reason why the plain jump failed is the one that is reported if
 * nothing shorter works either.
 */
#include "verdicts/judging.h"

#define LOWEST_ADDRESS 0x10000u /* mappable: vm.mmap_min_addr                     */

/* One entry on its way down the ladder. */
typedef struct climb {
    const hfn_judging *judging;
    uint32_t index;
    const hfn_subject *subject;
    uint64_t site;
    const uint8_t *bytes;    /* at the site                                         */
    uint64_t size;           /* of them, to the end of the region's tail            */
    uint64_t body;           /* bytes from the site to the function's end           */
    uint32_t jump_bytes;     /* of a patch with full reach                          */
    uint8_t pc_register;     /* of a call under it that gives back its return address */
    uint32_t limit;          /* how many bytes at the site may be overwritten, at most a jump's */
    uint32_t reason, offset; /* why not more; offset from the entry              */
    hfn_verdict *out;
} climb;

static void refuse(climb *c, uint32_t reason, uint64_t offset)
{
    if (c->reason != HOTFN_REASON_NONE) {
        return;
    }
    c->reason = reason;
    c->offset = offset < UINT32_MAX ? (uint32_t)offset : UINT32_MAX;
}

static void lower_limit(climb *c, uint32_t limit, uint32_t reason, uint64_t offset)
{
    if (limit >= c->limit) {
        return;
    }
    c->limit = limit;
    c->reason = HOTFN_REASON_NONE;
    refuse(c, reason, offset);
}

/* Where a landing pad of the exception tables may stand: behind an instruction that does not go on.
 * Those tables are not read; such a place within a patch is left alone. */
static void limit_by_landing_pads(climb *c)
{
    hfn_instruction in;
    uint32_t at = 0;

    while ((c->subject->flags & HOTFN_FUNCTION_HAS_LSDA) && at < c->limit && at < c->body) {
        if (!c->judging->arch->decode(c->bytes + at, c->size - at, c->site + at, 0, &in)) {
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

static void find_limit(climb *c)
{
    const hfn_judging *j = c->judging;
    uint32_t offset = c->out->pub.patch_offset;
    uint64_t next = c->index + 1 < j->count ? j->subjects[c->index + 1].rva : UINT64_MAX, read;

    c->limit = c->jump_bytes;
    if (c->size < c->limit) {
        lower_limit(c, (uint32_t)c->size, HOTFN_REASON_TOO_SHORT, offset + c->size);
    }
    for (uint32_t k = j->arch->patching->unit_bytes; k < c->limit;
         k += j->arch->patching->unit_bytes) {
        if (c->site + k == next) {
            lower_limit(c, k,
                        hfn_subject_ends(j, c->subject) ? HOTFN_REASON_TOO_SHORT
                                                        : HOTFN_REASON_OVERLAP,
                        offset + k);
        } else if (c->site + k < c->subject->region->end &&
                   hfn_region_marks(c->subject->region, c->site + k)) {
            lower_limit(c, k, k < c->body ? HOTFN_REASON_JUMP_INTO_PATCH : HOTFN_REASON_TOO_SHORT,
                        offset + k);
        }
    }
    if (hfn_fixed_reason(j, c->site, c->site + c->limit, &read) == HOTFN_REASON_READ) {
        lower_limit(c, (uint32_t)(read - c->site), HOTFN_REASON_READ, offset + (read - c->site));
    }
    if ((c->subject->notes & HFN_NOTE_UNBOUNDED) && j->arch->patching->unit_bytes < c->jump_bytes) {
        lower_limit(c, 1, HOTFN_REASON_UNBOUNDED_TABLE, c->subject->unbounded_at);
    }
    limit_by_landing_pads(c);
}

static void refuse_move(climb *c, hfn_move_result result, uint32_t offset)
{
    static const uint32_t reasons[] = {
        [HFN_MOVE_CALL] = HOTFN_REASON_CALL_IN_PATCH,
        [HFN_MOVE_IMPOSSIBLE] = HOTFN_REASON_CANNOT_MOVE,
        [HFN_MOVE_UNDECODABLE] = HOTFN_REASON_UNDECODABLE,
        [HFN_MOVE_TOO_LONG] = HOTFN_REASON_CANNOT_MOVE,
    };

    refuse(c, reasons[result], c->out->pub.patch_offset + offset);
}

/* None of the bytes at the site is known to somebody by its address, or changed by the loader. */
static bool may_leave(climb *c, uint32_t byte_count)
{
    uint64_t at = c->site;
    uint32_t reason = hfn_fixed_reason(c->judging, c->site, c->site + byte_count, &at);

    if (reason != HOTFN_REASON_NONE) {
        refuse(c, reason, c->out->pub.patch_offset + (at - c->site));
    }
    return reason == HOTFN_REASON_NONE;
}

/* Can the instructions under a patch of patch_bytes move? */
static bool can_move(climb *c, uint32_t patch_bytes)
{
    uint32_t wanted = patch_bytes < c->body ? patch_bytes : (uint32_t)c->body;
    uint32_t offset = 0;
    hfn_moved moved;

    hfn_move_result result =
        c->judging->arch->move(c->bytes, c->size, c->site, wanted, c->pc_register, &moved, &offset);
    if (result != HFN_MOVED) {
        refuse_move(c, result, offset);
        return false;
    }
    if (moved.original_bytes > c->body) {
        refuse(c, HOTFN_REASON_UNDECODABLE, c->out->pub.patch_offset + c->body);
        return false;
    }
    if (!may_leave(c, moved.original_bytes)) {
        return false;
    }
    c->out->covered_bytes = moved.original_bytes;
    c->out->pc_register = (uint8_t)(c->pc_register + 1);
    return true;
}

/* The part of the patch behind the function's end is dead padding, and now ours. */
static bool take_padding(climb *c, uint32_t patch_bytes)
{
    if (patch_bytes <= c->body ||
        hfn_pad_take(c->judging, c->index, c->subject->end, c->site + patch_bytes)) {
        return true;
    }
    refuse(c, HOTFN_REASON_TOO_SHORT, c->out->pub.patch_offset + c->body);
    return false;
}

static bool settle(climb *c, uint32_t strategy, uint32_t patch_bytes)
{
    c->out->pub.verdict = HOTFN_VERDICT_HOOKABLE;
    c->out->pub.strategy = strategy;
    c->out->pub.patch_bytes = patch_bytes;
    return true;
}

static bool try_retarget(climb *c)
{
    hfn_moved moved;

    if (c->limit < c->jump_bytes || c->body < c->jump_bytes ||
        !c->judging->arch->retarget(c->bytes, c->size, c->site, &moved)) {
        return false;
    }
    c->out->covered_bytes = moved.original_bytes;
    return settle(c, HOTFN_STRATEGY_RETARGET, c->jump_bytes);
}

/* Does every run through the entry pass the direct call at site + offset, and nothing else reach it? */
static bool leads_to_call(const climb *c, uint32_t offset)
{
    const hfn_judging *j = c->judging;
    uint64_t end = c->site + offset + c->jump_bytes, unused;
    uint64_t next = c->index + 1 < j->count ? j->subjects[c->index + 1].rva : UINT64_MAX;

    if (end > c->subject->end || next < end || (c->subject->notes & HFN_NOTE_UNBOUNDED)) {
        return false;
    }
    for (uint64_t at = c->site + 1; at < end; at++) {
        if (hfn_region_marks(c->subject->region, at)) {
            return false;
        }
    }
    return hfn_fixed_reason(j, end - c->jump_bytes, end, &unused) == HOTFN_REASON_NONE;
}

/* A call that stands in the way of the jump is retargeted itself. */
static bool try_retarget_call(climb *c)
{
    const hfn_arch *arch = c->judging->arch;
    hfn_instruction in = { .flow = HFN_FLOW_NEXT };
    hfn_moved moved;
    uint32_t at = 0;

    while (at < c->jump_bytes && in.flow == HFN_FLOW_NEXT) {
        if (!arch->decode(c->bytes + at, c->size - at, c->site + at, 0, &in)) {
            return false;
        }
        at += in.flow == HFN_FLOW_NEXT ? in.length : 0;
    }
    if (at >= c->jump_bytes || in.flow != HFN_FLOW_CALL || !leads_to_call(c, at) ||
        !arch->retarget(c->bytes + at, c->size - at, c->site + at, &moved)) {
        return false;
    }
    c->site = c->out->site_rva = c->site + at;
    c->out->pub.patch_offset += at;
    c->out->covered_bytes = moved.original_bytes;
    return settle(c, HOTFN_STRATEGY_RETARGET, c->jump_bytes);
}

static bool try_jump(climb *c)
{
    if (c->limit < c->jump_bytes || !can_move(c, c->jump_bytes) ||
        !take_padding(c, c->jump_bytes)) {
        return false;
    }
    return settle(c, c->body < c->jump_bytes ? HOTFN_STRATEGY_JUMP_PAD : HOTFN_STRATEGY_JUMP,
                  c->jump_bytes);
}

static bool try_island(climb *c)
{
    hfn_subject *subject = &c->judging->subjects[c->index];
    uint8_t pad_used = subject->pad_used;
    uint32_t short_bytes = c->judging->arch->patching->short_jump_bytes;
    uint64_t from = c->site + short_bytes;

    if (short_bytes == 0 || c->limit < short_bytes || !can_move(c, short_bytes) ||
        !take_padding(c, short_bytes)) {
        return false;
    }
    uint64_t low = from > 128 ? from - 128 : 0;
    uint64_t island = hfn_pad_find(c->judging, low, from + 127, c->jump_bytes);
    if (island == UINT64_MAX) {
        subject->pad_used = pad_used;
        if (c->reason == HOTFN_REASON_TOO_SHORT) {
            c->reason = HOTFN_REASON_NO_ISLAND;
        }
        return false;
    }
    c->out->island_rva = island;
    return settle(c, HOTFN_STRATEGY_ISLAND, short_bytes);
}

/* Is there memory that a jump with these fixed displacement bits reaches, outside the image? */
static bool window_exists(const climb *c, uint32_t fixed, uint32_t mask)
{
    const hotfn_image_info *info = &c->judging->info;
    int64_t from = (int64_t)(c->site + c->jump_bytes) + (int32_t)fixed;
    int64_t to = from + (int64_t)(uint32_t)~mask;
    if (c->judging->arch->pointer_bytes == 4) {
        return true; /* every distance leads around 4 GiB to some place */
    }
    int64_t lowest =
        c->judging->fixed_place ? (int64_t)LOWEST_ADDRESS - (int64_t)info->link_base : INT64_MIN;

    return (from < 0 && to >= lowest) || to >= (int64_t)info->loaded_bytes;
}

/* The bytes behind the patch keep their values and are part of the jump: nobody may change them. */
static bool try_pun(climb *c, uint32_t patch_bytes)
{
    uint32_t fixed = 0, mask = 0;
    hfn_subject *subject = &c->judging->subjects[c->index];
    uint8_t pad_used = subject->pad_used;
    uint64_t next = c->index + 1 < c->judging->count ? subject[1].rva : UINT64_MAX;

    if (c->limit < patch_bytes || c->size < c->jump_bytes || next < c->site + c->jump_bytes) {
        return false;
    }
    for (uint32_t i = patch_bytes; i < c->jump_bytes; i++) {
        fixed |= (uint32_t)c->bytes[i] << (8 * (i - 1));
        mask |= 0xFFu << (8 * (i - 1));
    }
    if (!window_exists(c, fixed, mask) || !can_move(c, patch_bytes) ||
        !may_leave(c, c->jump_bytes) || !take_padding(c, c->jump_bytes)) {
        subject->pad_used = pad_used;
        return false;
    }
    c->out->pun_fixed = fixed;
    c->out->pun_mask = mask;
    return settle(c, HOTFN_STRATEGY_PUN, patch_bytes);
}

static bool try_int3(climb *c)
{
    return (c->judging->flags & HOTFN_VERDICTS_ALLOW_INT3) && can_move(c, 1) &&
           settle(c, HOTFN_STRATEGY_INT3, 1);
}

/* Plus 1; 0: none. */
static uint8_t find_scratch_register(const climb *c)
{
    const hfn_region *region = c->subject->region;
    const hfn_arch *arch = c->judging->arch;
    uint8_t number = arch->find_scratch_register
                         ? arch->find_scratch_register(region->bytes, region->end - region->rva,
                                                       region->rva, c->site)
                         : HFN_NO_REGISTER;

    return number == HFN_NO_REGISTER ? 0 : number + 1;
}

/* i386: does a direct call among the bytes that a jump takes do nothing but give back its own place?  Then
 * it can move, and the function has its hook at the first byte, where it may be timed too. */
static uint8_t find_pc_call(const climb *c)
{
    const hfn_judging *j = c->judging;
    hfn_instruction in = { .flow = HFN_FLOW_NEXT };

    if (!j->arch->pc_register) {
        return HFN_NO_REGISTER;
    }
    for (uint32_t at = 0; at < c->jump_bytes && in.flow == HFN_FLOW_NEXT; at += in.length) {
        if (!j->arch->decode(c->bytes + at, c->size - at, c->site + at, 0, &in)) {
            return HFN_NO_REGISTER;
        }
    }
    const hfn_region *region =
        in.flow == HFN_FLOW_CALL ? hfn_code_region(&j->code, in.target) : NULL;
    return region ? j->arch->pc_register(region->bytes + (in.target - region->rva),
                                         region->end - in.target)
                  : HFN_NO_REGISTER;
}

static climb start(const hfn_judging *j, uint32_t index, hfn_verdict *out)
{
    const hfn_subject *s = &j->subjects[index];
    const uint8_t *bytes = s->region->bytes + (s->rva - s->region->rva);
    uint64_t size = s->region->tail_end - s->rva;
    climb c = { .judging = j,
                .index = index,
                .subject = s,
                .jump_bytes = j->arch->patching->jump_bytes,
                .out = out };
    hfn_instruction in;

    if (j->arch->decode(bytes, size, s->rva, 0, &in) && in.is_landing_pad &&
        in.length < s->end - s->rva) {
        out->pub.patch_offset = in.length;
        out->pub.flags |= HOTFN_VERDICT_LANDING_PAD;
        if (in.signs_return) {
            out->pub.flags |=
                HOTFN_VERDICT_RETURN_SIGNED | (in.with_key_b ? HOTFN_VERDICT_KEY_B : 0);
        }
    }
    c.site = out->site_rva = s->rva + out->pub.patch_offset;
    c.bytes = bytes + out->pub.patch_offset;
    c.size = size - out->pub.patch_offset;
    c.body = s->end - c.site;
    c.pc_register = find_pc_call(&c);
    if (j->arch->decode(c.bytes, c.size, c.site, 0, &in) && in.with_key_b) {
        out->pub.flags |= HOTFN_VERDICT_KEY_B; /* it moves */
    }
    find_limit(&c);
    return c;
}

static void finish(const climb *c)
{
    hfn_verdict *out = c->out;

    if (out->pub.verdict == HOTFN_VERDICT_HOOKABLE) {
        if (hfn_flags_live(c->judging, c->site, c->subject->notes & HFN_NOTE_HANDS_FLAGS)) {
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

bool hfn_ladder_first(const hfn_judging *j, uint32_t index, hfn_verdict *out)
{
    climb c = start(j, index, out);

    if (!(c.pc_register == HFN_NO_REGISTER && try_retarget(&c)) && !try_jump(&c) &&
        !try_retarget(&c) && !try_retarget_call(&c)) {
        return false;
    }
    finish(&c);
    return true;
}

void hfn_ladder_second(const hfn_judging *j, uint32_t index, hfn_verdict *out)
{
    climb c = start(j, index, out);
    bool found = try_jump(&c) || try_island(&c);

    /* A patch that is one instruction has nothing shorter below it. */
    for (uint32_t patch_bytes = c.jump_bytes - 1;
         patch_bytes >= j->arch->patching->unit_bytes && !found; patch_bytes--) {
        found = try_pun(&c, patch_bytes);
    }
    if (!found && j->arch->patching->unit_bytes < c.jump_bytes) {
        try_int3(&c);
    }
    finish(&c);
}
