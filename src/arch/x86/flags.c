/* SPDX-License-Identifier: MIT */
/*
 * Follows the line from an entry, through direct jumps and into direct calls (hand-written code passes
 * flags to its callees), until the flags are read (live) or all written (dead).  They do not live
 * through a return or an indirect branch: no x86 ABI passes anything in them, and gcc's -fipa-ra
 * never keeps them (they are a fixed register to it).  What is not understood is live.
 */
#include "arch/x86/flags.h"

#include "arch/x86/decode.h"

#define STEPS_MAX 64

typedef enum flag_use { UNKNOWN, LEAVES, WRITES_ALL } flag_use;

/* The commonest instructions of prologues, without asking Zydis. */
static flag_use known_use(hfn_x86_mode mode, const uint8_t *bytes, const hfn_instruction *in)
{
    uint8_t opcode = bytes[0];
    const uint8_t *modrm = bytes + 1;

    if (in->is_padding || in->is_landing_pad)
        return LEAVES;
    if (mode == HFN_X86_64 && (opcode & 0xF0) == 0x40 && in->length >= 2) { /* REX */
        opcode = bytes[1];
        modrm = bytes + 2;
    }
    if ((opcode >= 0x50 && opcode <= 0x5F) || (opcode >= 0x88 && opcode <= 0x8B) ||
        opcode == 0x8D || (opcode >= 0xB0 && opcode <= 0xBF) ||
        (mode == HFN_X86_64 && opcode == 0x63)) /* movsxd; arpl in 32-bit code */
        return LEAVES;
    if (opcode < 0x40 && (opcode & 7) < 6) /* add or adc sbb and sub xor cmp */
        return (opcode & 0x38) == 0x10 || (opcode & 0x38) == 0x18 ? UNKNOWN : WRITES_ALL;
    if (opcode == 0x84 || opcode == 0x85 || opcode == 0xA8 || opcode == 0xA9) /* test */
        return WRITES_ALL;
    if (opcode == 0x80 || opcode == 0x81 || opcode == 0x83) /* the same by an immediate */
        return (*modrm & 0x38) == 0x10 || (*modrm & 0x38) == 0x18 ? UNKNOWN : WRITES_ALL;
    return UNKNOWN;
}

typedef enum verdict { GO_ON, LIVE, DEAD } verdict;

static verdict judge_flow(const hfn_instruction *in)
{
    switch (in->flow) {
    case HFN_FLOW_CALL_INDIRECT:
    case HFN_FLOW_JUMP_INDIRECT:
    case HFN_FLOW_RETURN: return DEAD;
    case HFN_FLOW_STOP: return in->is_padding ? GO_ON : DEAD;
    case HFN_FLOW_JUMP_IF: return LIVE; /* reads them, or splits the line (loop, jrcxz) */
    default: return GO_ON;
    }
}

static verdict judge_flags(hfn_x86_mode mode, const uint8_t *bytes, uint64_t size, uint64_t rva,
                           uint32_t *unwritten)
{
    hfn_x86_effects effects;

    if (!hfn_x86_effects_of(mode, bytes, size, rva, &effects) || (effects.flags_read & *unwritten))
        return LIVE;
    *unwritten &= ~effects.flags_written;
    return *unwritten ? GO_ON : DEAD;
}

static verdict judge_one(hfn_x86_mode mode, const uint8_t *bytes, uint64_t size, uint64_t rva,
                         uint32_t *unwritten, hfn_instruction *in)
{
    if (size == 0 || !hfn_x86_decode(mode, bytes, size, rva, 0, in))
        return LIVE;
    verdict by_flow = judge_flow(in);
    if (by_flow != GO_ON)
        return by_flow;
    flag_use use = known_use(mode, bytes, in);
    if (use == UNKNOWN)
        return judge_flags(mode, bytes, size, rva, unwritten);
    return use == WRITES_ALL ? DEAD : GO_ON;
}

bool hfn_x86_flags_live(hfn_x86_mode mode, const uint8_t *bytes, uint64_t size, uint64_t rva,
                        uint64_t *jumps_to)
{
    uint32_t unwritten = HFN_X86_ARITHMETIC_FLAGS;
    uint64_t at = 0;
    hfn_instruction in;

    *jumps_to = UINT64_MAX;
    for (uint32_t step = 0; step < STEPS_MAX; step++) {
        verdict v = judge_one(mode, bytes + at, size - at, rva + at, &unwritten, &in);
        if (v != GO_ON)
            return v == LIVE;
        bool leaves = in.flow == HFN_FLOW_JUMP || in.flow == HFN_FLOW_CALL;
        at = leaves ? in.target - rva : at + in.length;
        if (at >= size) {
            *jumps_to = rva + at;
            return true;
        }
    }
    return true;
}
