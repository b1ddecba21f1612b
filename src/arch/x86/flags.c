/* SPDX-License-Identifier: MIT */
/*
 * Follows the line from a place, through direct jumps and direct calls and back from those (hand-written
 * code passes flags to its callees, and through them; so do the pieces that clang's outliner makes), until
 * the flags are read (live) or all written (dead).  Whether they live through the return of who stands at
 * that place, the caller has to know.  They do not live through an indirect branch: no x86 ABI passes anything
 * in them, and gcc's -fipa-ra never keeps them (they are a fixed register to it).  What is not understood
 * is live; a loop without end reads nothing.
 */
#include "arch/x86/flags.h"

#include "arch/x86/decode.h"

#include <string.h>

#define STEPS_MAX 256
#define CALLS_MAX 4 /* within each other */

typedef enum flag_use { UNKNOWN, LEAVES, WRITES_ALL } flag_use;

/* Moves and arithmetic of SSE, and movzx, movsx.  opcode: behind 0x0F, with or without a prefix. */
static bool leaves_behind_escape(uint8_t opcode)
{
    return (opcode >= 0x10 && opcode <= 0x17) || opcode == 0x28 || opcode == 0x29 ||
           (opcode >= 0x50 && opcode <= 0x76) || opcode == 0x7E || opcode == 0x7F ||
           opcode == 0xB6 || opcode == 0xB7 || opcode == 0xBE || opcode == 0xBF;
}

/* The commonest instructions, without asking Zydis. */
static flag_use known_use(hfn_x86_mode mode, const uint8_t *bytes, const hfn_instruction *in)
{
    bool has_prefix = in->length >= 4 && (bytes[0] == 0x66 || (bytes[0] & 0xFE) == 0xF2);
    const uint8_t *modrm = bytes + 1 + has_prefix;
    uint8_t opcode = modrm[-1];

    if (in->is_padding || in->is_landing_pad) {
        return LEAVES;
    }
    if (mode == HFN_X86_64 && (opcode & 0xF0) == 0x40 && in->length >= 2 + has_prefix) { /* REX */
        opcode = *modrm++;
    }
    if (opcode == 0x0F && in->length >= 3) {
        return leaves_behind_escape(*modrm) ? LEAVES : UNKNOWN;
    }
    if (has_prefix) {
        return UNKNOWN;
    }
    if ((opcode >= 0x50 && opcode <= 0x5F) || (opcode >= 0x88 && opcode <= 0x8B) ||
        opcode == 0x8D || opcode == 0xC6 || (opcode == 0xC7 && (*modrm & 0x38) == 0) ||
        (opcode >= 0xB0 && opcode <= 0xBF) ||
        (mode == HFN_X86_64 && opcode == 0x63)) { /* movsxd; arpl in 32-bit code */
        return LEAVES;
    }
    if (opcode < 0x40 && (opcode & 7) < 6) { /* add or adc sbb and sub xor cmp */
        return (opcode & 0x38) == 0x10 || (opcode & 0x38) == 0x18 ? UNKNOWN : WRITES_ALL;
    }
    if (opcode == 0x84 || opcode == 0x85 || opcode == 0xA8 || opcode == 0xA9) { /* test */
        return WRITES_ALL;
    }
    if (opcode == 0x80 || opcode == 0x81 || opcode == 0x83) { /* the same by an immediate */
        return (*modrm & 0x38) == 0x10 || (*modrm & 0x38) == 0x18 ? UNKNOWN : WRITES_ALL;
    }
    return UNKNOWN;
}

typedef enum verdict { GO_ON, LIVE, DEAD, RETURNS } verdict;

static verdict judge_flow(const hfn_instruction *in)
{
    switch (in->flow) {
    case HFN_FLOW_CALL_INDIRECT:
    case HFN_FLOW_JUMP_INDIRECT: return DEAD;
    case HFN_FLOW_RETURN: return RETURNS;
    case HFN_FLOW_STOP: return in->is_padding ? GO_ON : DEAD;
    case HFN_FLOW_JUMP_IF: return LIVE; /* reads them, or splits the line (loop, jrcxz) */
    default: return GO_ON;
    }
}

static verdict judge_flags(hfn_x86_mode mode, const uint8_t *bytes, uint64_t size, uint64_t rva,
                           uint32_t *unwritten)
{
    hfn_x86_effects effects;

    if (!hfn_x86_decode_effects(mode, bytes, size, rva, &effects) ||
        (effects.flags_read & *unwritten)) {
        return LIVE;
    }
    *unwritten &= ~effects.flags_written;
    return *unwritten ? GO_ON : DEAD;
}

static verdict judge_one(hfn_x86_mode mode, const uint8_t *bytes, uint64_t size, uint64_t rva,
                         uint32_t *unwritten, hfn_instruction *in)
{
    if (!hfn_x86_decode(mode, bytes, size, rva, 0, in)) {
        return LIVE;
    }
    verdict by_flow = judge_flow(in);
    if (by_flow != GO_ON) {
        return by_flow;
    }
    flag_use use = known_use(mode, bytes, in);
    if (use == UNKNOWN) {
        return judge_flags(mode, bytes, size, rva, unwritten);
    }
    return use == WRITES_ALL ? DEAD : GO_ON;
}

/* A line on its way. */
typedef struct line {
    uint64_t at, back[CALLS_MAX]; /* offsets of code; back: behind the calls it is in */
    uint32_t calls;
} line;

static bool same_place(const line *a, const line *b)
{
    return a->at == b->at && a->calls == b->calls &&
           memcmp(a->back, b->back, a->calls * sizeof a->back[0]) == 0;
}

/* Behind the instruction, or where it leads. */
static verdict follow(line *l, const hfn_instruction *in, uint64_t rva)
{
    if (in->flow == HFN_FLOW_CALL && l->calls == CALLS_MAX) {
        return LIVE;
    }
    l->at += in->length;
    if (in->flow == HFN_FLOW_CALL) {
        l->back[l->calls++] = l->at;
    }
    if (in->flow == HFN_FLOW_JUMP || in->flow == HFN_FLOW_CALL) {
        l->at = in->target - rva;
    }
    return GO_ON;
}

bool hfn_x86_are_flags_live(hfn_x86_mode mode, const uint8_t *bytes, uint64_t size, uint64_t rva,
                            uint64_t at, bool at_return, uint64_t *leaves_to)
{
    uint32_t unwritten = HFN_X86_ARITHMETIC_FLAGS;
    line l = { .at = at - rva }, earlier = { .at = UINT64_MAX };
    hfn_instruction in;

    *leaves_to = UINT64_MAX;
    for (uint32_t step = 0; step < STEPS_MAX; step++) {
        if (same_place(&l, &earlier)) { /* a loop without end, as behind a retpoline's call */
            return false;
        }
        if ((step & (step - 1)) == 0) {
            earlier = l;
        }
        if (l.at >= size) {
            *leaves_to = rva + l.at;
            return true;
        }
        verdict v = judge_one(mode, bytes + l.at, size - l.at, rva + l.at, &unwritten, &in);
        if (v == RETURNS && l.calls == 0) {
            return at_return;
        }
        if (v == RETURNS) {
            l.at = l.back[--l.calls];
        } else if (v == GO_ON) {
            v = follow(&l, &in, rva);
        }
        if (v == LIVE || v == DEAD) {
            return v == LIVE;
        }
    }
    return true;
}
