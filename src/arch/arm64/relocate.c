/* SPDX-License-Identifier: MIT */
/*
 * Rewrites a function's first instructions so that they have the same effect at another address.  A
 * conditional branch becomes its inverse over a `b`, which reaches 128 MiB.  Addresses are loaded
 * from literals after the code, so they may be at any distance.  Where a register is needed, x16 or
 * x17 is used, which veneers may change at any call (AAPCS64, 6.1.1).  Indirect branches are not
 * used, as their targets would need a BTI.
 */
#include "arch/arm64/relocate.h"

#include "arch/arm64/decode.h"
#include "arch/arm64/emit.h"

#include <string.h>

#define MAX_INSTRUCTIONS (sizeof((hfn_moved){ 0 }.original_at))
#define NO_REGISTER 32u
#define COND_ALWAYS 14u /* and 15 */

/* An address stored after the code. */
typedef struct literal {
    uint32_t load_at; /* offset of the load that reads it */
    uint32_t reg;
    uint64_t target;
} literal;

typedef struct move_job {
    const uint8_t *bytes;
    uint64_t rva;
    uint32_t patch_bytes;
    uint32_t count;
    uint32_t scratch; /* 16, 17 or NO_REGISTER */
    uint32_t words[MAX_INSTRUCTIONS];
    hfn_arm64_form forms[MAX_INSTRUCTIONS];
    uint32_t moved_at[MAX_INSTRUCTIONS + 1];
    literal literals[HFN_FIXUP_MAX];
    uint32_t literal_count;
    hfn_arm64_writer out;
    hfn_moved *moved;
} move_job;

/* May the instruction name the register?  PC-relative forms have at most one register field. */
static bool names_register(uint32_t word, hfn_arm64_form form, uint32_t reg)
{
    if (form == HFN_ARM64_B || form == HFN_ARM64_B_COND) {
        return false;
    }
    if (form != HFN_ARM64_PLAIN && form != HFN_ARM64_BRANCH) {
        return hfn_arm64_get_bits(word, 4, 0) == reg;
    }
    return hfn_arm64_get_bits(word, 4, 0) == reg || hfn_arm64_get_bits(word, 9, 5) == reg ||
           hfn_arm64_get_bits(word, 14, 10) == reg || hfn_arm64_get_bits(word, 20, 16) == reg;
}

/* x16 or x17 if no moved instruction may name it. */
static uint32_t find_free_register(const move_job *job)
{
    for (uint32_t reg = 17; reg >= 16; reg--) {
        uint32_t i = 0;
        while (i < job->count && !names_register(job->words[i], job->forms[i], reg)) {
            i++;
        }
        if (i == job->count) {
            return reg;
        }
    }
    return NO_REGISTER;
}

static bool is_unconditional(uint32_t word, hfn_arm64_form form)
{
    return form == HFN_ARM64_B || (form == HFN_ARM64_B_COND && (word & 15) >= COND_ALWAYS);
}

static bool is_simd_load(uint32_t word)
{
    return word >> 26 & 1;
}

static bool is_prefetch(uint32_t word)
{
    return !is_simd_load(word) && word >> 30 == 3;
}

/* Loads that cannot use their target register for the address. */
static bool needs_scratch(uint32_t word)
{
    return is_simd_load(word) || is_prefetch(word) || (word & 31) == 31;
}

static uint32_t get_moved_words(uint32_t word, hfn_arm64_form form)
{
    switch (form) {
    case HFN_ARM64_B_COND: return is_unconditional(word, form) ? 1 : 2;
    case HFN_ARM64_CBZ:
    case HFN_ARM64_TBZ:
    case HFN_ARM64_LOAD_LITERAL: return 2;
    default: return 1;
    }
}

static hfn_move_result read_words(move_job *job, uint64_t size)
{
    uint32_t at = 0;

    for (; job->count * HFN_ARM64_BYTES < job->patch_bytes; job->count++) {
        uint32_t i = job->count, offset = i * HFN_ARM64_BYTES;
        if (i == MAX_INSTRUCTIONS) {
            return HFN_MOVE_TOO_LONG;
        }
        if (size - offset < HFN_ARM64_BYTES) {
            return HFN_MOVE_UNDECODABLE;
        }
        job->words[i] = hfn_read_le32(job->bytes + offset);
        job->forms[i] = hfn_arm64_get_form(job->words[i]);
        job->moved_at[i] = at;
        if (job->forms[i] == HFN_ARM64_NONE || job->forms[i] == HFN_ARM64_BOUND) {
            return job->forms[i] == HFN_ARM64_NONE ? HFN_MOVE_UNDECODABLE : HFN_MOVE_IMPOSSIBLE;
        }
        hfn_instruction in;
        if (hfn_arm64_decode(job->bytes + offset, HFN_ARM64_BYTES, job->rva + offset, 0, &in) &&
            (in.flow == HFN_FLOW_CALL || in.flow == HFN_FLOW_CALL_INDIRECT)) {
            return HFN_MOVE_CALL;
        }
        at += get_moved_words(job->words[i], job->forms[i]) * HFN_ARM64_BYTES;
    }
    job->moved_at[job->count] = at;
    return HFN_MOVED;
}

static uint64_t get_target(const move_job *job, uint32_t i)
{
    uint64_t rva = job->rva + (uint64_t)i * HFN_ARM64_BYTES;

    if (job->forms[i] == HFN_ARM64_ADRP) {
        rva &= ~UINT64_C(4095);
    }
    return rva + (uint64_t)hfn_arm64_get_distance(job->words[i], job->forms[i]);
}

static bool add_fixup(hfn_moved *out, uint32_t at, uint32_t kind, uint64_t target_rva)
{
    if (out->fixup_count == HFN_FIXUP_MAX) {
        return false;
    }
    out->fixups[out->fixup_count++] =
        (hfn_fixup){ .at = (uint8_t)at, .end = (uint8_t)kind, .target_rva = target_rva };
    return true;
}

/* Write a b to the copy of target, or with a fixup if target does not move. */
static hfn_move_result put_jump(move_job *job, uint64_t target)
{
    uint64_t index = (target - job->rva) / HFN_ARM64_BYTES;
    uint32_t word = 0x14000000, at = job->out.length;

    if (index < job->count) {
        hfn_arm64_make_branch(&word, (int64_t)job->moved_at[index] - (int64_t)at);
        hfn_arm64_put_word(&job->out, word);
        return HFN_MOVED;
    }
    hfn_arm64_put_word(&job->out, word);
    return add_fixup(job->moved, at, HFN_ARM64_FIXUP_BRANCH, target) ? HFN_MOVED
                                                                     : HFN_MOVE_TOO_LONG;
}

/* Invert the condition: its lowest bit in b.cond, bit 24 in cbz and tbz. */
static hfn_move_result put_condition(move_job *job, uint32_t i)
{
    uint32_t word = job->words[i] ^ (job->forms[i] == HFN_ARM64_B_COND ? 1u : 1u << 24);

    hfn_arm64_set_branch_distance(&word, 2 * HFN_ARM64_BYTES);
    hfn_arm64_put_word(&job->out, word);
    return put_jump(job, get_target(job, i));
}

/* ldr reg, =target */
static hfn_move_result put_address(move_job *job, uint32_t reg, uint64_t target)
{
    if (job->literal_count == HFN_FIXUP_MAX) {
        return HFN_MOVE_TOO_LONG;
    }
    job->literals[job->literal_count++] =
        (literal){ .load_at = hfn_arm64_put_word(&job->out, 0), .reg = reg, .target = target };
    return HFN_MOVED;
}

/* Replace a load's PC-relative field by a base register (Arm ARM, C6.2: LDR immediate, LDRSW
 * immediate, PRFM immediate; C7.2: LDR immediate, SIMD&FP). */
static uint32_t make_base_load(uint32_t word, uint32_t base)
{
    static const uint32_t general[4] = { 0xB9400000, 0xF9400000, 0xB9800000, 0xF9800000 };
    static const uint32_t simd[3] = { 0xBD400000, 0xFD400000, 0x3DC00000 };
    uint32_t opc = word >> 30;

    return (is_simd_load(word) ? simd[opc] : general[opc]) | base << 5 | (word & 31);
}

static hfn_move_result put_load(move_job *job, uint32_t i)
{
    uint32_t word = job->words[i], base = needs_scratch(word) ? job->scratch : word & 31;
    uint64_t target = get_target(job, i);

    /* The copy would read the patch. */
    if (target + 16 > job->rva && target < job->rva + job->patch_bytes) {
        return HFN_MOVE_IMPOSSIBLE;
    }
    if (base == NO_REGISTER) {
        return HFN_MOVE_IMPOSSIBLE;
    }
    hfn_move_result result = put_address(job, base, target);
    hfn_arm64_put_word(&job->out, make_base_load(word, base));
    return result;
}

static hfn_move_result put_instruction(move_job *job, uint32_t i)
{
    uint32_t word = job->words[i];
    hfn_arm64_form form = job->forms[i];

    if (is_unconditional(word, form)) {
        return put_jump(job, get_target(job, i));
    }
    switch (form) {
    case HFN_ARM64_B_COND:
    case HFN_ARM64_CBZ:
    case HFN_ARM64_TBZ: return put_condition(job, i);
    case HFN_ARM64_LOAD_LITERAL: return put_load(job, i);
    case HFN_ARM64_ADR:
    case HFN_ARM64_ADRP:
        if ((word & 31) != 31) {
            return put_address(job, word & 31, get_target(job, i));
        }
        word = 0xD503201F; /* writes xzr: nop */
        break;
    default: break;
    }
    hfn_arm64_put_word(&job->out, word);
    return HFN_MOVED;
}

static bool falls_through(const move_job *job)
{
    hfn_instruction in = { .flow = HFN_FLOW_NEXT };

    if (job->count == 0) {
        return true;
    }
    if (is_unconditional(job->words[job->count - 1], job->forms[job->count - 1])) {
        return false;
    }
    hfn_arm64_decode(job->bytes + (job->count - 1) * HFN_ARM64_BYTES, HFN_ARM64_BYTES, 0, 0, &in);
    return in.flow != HFN_FLOW_JUMP_INDIRECT && in.flow != HFN_FLOW_RETURN &&
           in.flow != HFN_FLOW_STOP;
}

/* Literals may be unaligned: data accesses to normal memory may be (Arm ARM, B2.5). */
static hfn_move_result put_literals(move_job *job)
{
    for (uint32_t i = 0; i < job->literal_count; i++) {
        const literal *l = &job->literals[i];
        uint32_t at = hfn_arm64_put_word(&job->out, 0);
        hfn_arm64_put_word(&job->out, 0);
        hfn_arm64_replace_word(&job->out, l->load_at,
                               hfn_arm64_make_load_literal(l->reg, at - l->load_at));
        if (!add_fixup(job->moved, at, HFN_ARM64_FIXUP_ADDRESS, l->target)) {
            return HFN_MOVE_TOO_LONG;
        }
    }
    return HFN_MOVED;
}

/* Fill in the tables for hooks and unwinders: old and new offsets, and the depth of the stack. */
static void describe_positions(const move_job *job, hfn_moved *out)
{
    int32_t grown = 0;

    out->instruction_count = (uint8_t)job->count;
    for (uint32_t i = 0; i < job->count; i++) {
        int32_t growth = 0;
        out->original_at[i] = (uint8_t)(i * HFN_ARM64_BYTES);
        out->moved_at[i] = (uint8_t)job->moved_at[i];
        out->cfa_delta[i] = (int16_t)grown;
        bool known = hfn_arm64_get_stack_growth(job->words[i], &growth);
        if (grown != HFN_CFA_UNKNOWN) {
            grown = known && grown + growth > INT16_MIN && grown + growth <= INT16_MAX
                        ? grown + growth
                        : HFN_CFA_UNKNOWN;
        }
    }
    out->cfa_delta_end = (int16_t)grown;
}

static hfn_move_result put_all(move_job *job, uint32_t *offset)
{
    hfn_move_result result = HFN_MOVED;

    for (uint32_t i = 0; result == HFN_MOVED && i < job->count; i++) {
        *offset = i * HFN_ARM64_BYTES;
        result = put_instruction(job, i);
    }
    if (result == HFN_MOVED && falls_through(job)) {
        result = put_jump(job, job->rva + (uint64_t)job->count * HFN_ARM64_BYTES);
    }
    if (result == HFN_MOVED) {
        result = put_literals(job);
    }
    return result == HFN_MOVED && job->out.full ? HFN_MOVE_TOO_LONG : result;
}

hfn_move_result hfn_arm64_move_prologue(const uint8_t *bytes, uint64_t size, uint64_t rva,
                                        uint32_t patch_bytes, uint8_t pc_register, hfn_moved *out,
                                        uint32_t *offset)
{
    hfn_moved moved = { .length = 0 };

    (void)pc_register;
    move_job job = { .bytes = bytes, .rva = rva, .patch_bytes = patch_bytes, .moved = &moved };

    job.out = hfn_arm64_begin_writer(moved.bytes, HFN_MOVED_MAX);
    hfn_move_result result = (rva & 3) != 0 ? HFN_MOVE_UNDECODABLE : read_words(&job, size);
    *offset = job.count * HFN_ARM64_BYTES;
    if (result != HFN_MOVED) {
        return result;
    }
    job.scratch = find_free_register(&job);
    result = put_all(&job, offset);
    if (result != HFN_MOVED) {
        return result;
    }
    describe_positions(&job, &moved);
    moved.length = (uint8_t)job.out.length;
    moved.original_bytes = (uint8_t)(job.count * HFN_ARM64_BYTES);
    *out = moved;
    return HFN_MOVED;
}

bool hfn_arm64_make_retarget(const uint8_t *bytes, uint64_t size, uint64_t rva, hfn_moved *out)
{
    hfn_moved moved = { .instruction_count = 0, .length = HFN_ARM64_BYTES };
    hfn_arm64_writer w = hfn_arm64_begin_writer(moved.bytes, HFN_MOVED_MAX);

    if (size < HFN_ARM64_BYTES || (rva & 3) != 0) {
        return false;
    }
    uint32_t word = hfn_read_le32(bytes);
    hfn_arm64_form form = hfn_arm64_get_form(word);
    if (form != HFN_ARM64_BL && form != HFN_ARM64_B) {
        return false;
    }
    add_fixup(&moved, hfn_arm64_put_word(&w, 0x14000000), HFN_ARM64_FIXUP_BRANCH,
              rva + (uint64_t)hfn_arm64_get_distance(word, form));
    moved.original_bytes = HFN_ARM64_BYTES;
    *out = moved;
    return true;
}
