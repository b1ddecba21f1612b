/* SPDX-License-Identifier: MIT */
/*
 * Classifies A64 words by what hooks need: where control goes, which field is PC-relative, and
 * which instructions cannot move.  Unallocated encodings are accepted if they trap at every
 * address. PC-relative forms and branches are decoded exactly (Arm ARM, C4.1);
 * tests/property/arm64_agreement.c compares them with a second decoder.
 */
#include "arch/arm64/decode.h"

#include <string.h>

#define SVC 0xD4000001u
#define NOP 0xD503201Fu

/* Arm ARM, C4.1.93 'Branches, Exception Generating and System': BR, BLR, RET, ERET, DRPS and their
 * forms with pointer authentication. */
static hfn_arm64_form get_register_branch_form(uint32_t word)
{
    uint32_t opc = hfn_arm64_get_bits(word, 24, 21), op3 = hfn_arm64_get_bits(word, 15, 10);
    uint32_t rn = hfn_arm64_get_bits(word, 9, 5), op4 = hfn_arm64_get_bits(word, 4, 0);
    bool is_signed = (op3 & 0x3E) == 2; /* ...A or ...B */

    if (hfn_arm64_get_bits(word, 20, 16) != 31) {
        return HFN_ARM64_NONE;
    }
    switch (opc) {
    case 0: /* br */
    case 1: /* blr */
        return (op3 == 0 && op4 == 0) || (is_signed && op4 == 31) ? HFN_ARM64_BRANCH
                                                                  : HFN_ARM64_NONE;
    case 2: /* ret */
        return (op3 == 0 && op4 == 0) || (is_signed && rn == 31 && op4 == 31) ? HFN_ARM64_BRANCH
                                                                              : HFN_ARM64_NONE;
    case 4: /* eret */
        return rn == 31 && ((op3 == 0 && op4 == 0) || (is_signed && op4 == 31)) ? HFN_ARM64_BRANCH
                                                                                : HFN_ARM64_NONE;
    case 5: /* drps */ return rn == 31 && op3 == 0 && op4 == 0 ? HFN_ARM64_BRANCH : HFN_ARM64_NONE;
    case 8: /* braa, brab */
    case 9: /* blraa, blrab */ return is_signed ? HFN_ARM64_BRANCH : HFN_ARM64_NONE;
    default: return HFN_ARM64_NONE;
    }
}

/* SVC, HVC, SMC, BRK, HLT, DCPS1..3 */
static bool is_exception(uint32_t word)
{
    uint32_t opc = hfn_arm64_get_bits(word, 23, 21), low = hfn_arm64_get_bits(word, 4, 0);

    switch (opc) {
    case 0:
    case 5: return low >= 1 && low <= 3;
    case 1:
    case 2:
    case 3: return low == 0; /* brk, hlt, tcancel */
    default: return false;
    }
}

static hfn_arm64_form get_branch_form(uint32_t word)
{
    uint32_t top = word >> 24;

    if ((top & 0x7C) == 0x14) {
        return top & 0x80 ? HFN_ARM64_BL : HFN_ARM64_B;
    }
    if ((top & 0x7E) == 0x34) {
        return HFN_ARM64_CBZ;
    }
    if ((top & 0x7E) == 0x36) {
        return HFN_ARM64_TBZ;
    }
    if (top == 0x54) {
        return HFN_ARM64_B_COND;
    }
    if (top == 0xD4) {
        return is_exception(word) ? HFN_ARM64_PLAIN : HFN_ARM64_NONE;
    }
    if (top == 0xD5) {
        return HFN_ARM64_PLAIN; /* system: hints, barriers, msr, mrs, sys */
    }
    return (top & 0xFE) == 0xD6 ? get_register_branch_form(word) : HFN_ARM64_NONE;
}

/* FEAT_MOPS (C4.1.94, 'Memory Copy and Memory Set'): prologue, main and epilogue must be
 * adjacent, since the kernel may restart them from the first. */
static bool is_memory_copy(uint32_t word)
{
    return (word & 0x3B200C00) == 0x19000400;
}

/* FEAT_PAuth_LR, 'Data-processing (1 source)': paciasppc and similar, which sign with the PC. */
static bool signs_pc(uint32_t word)
{
    return (word & 0xFFFF801F) == 0xDAC1801E;
}

hfn_arm64_form hfn_arm64_get_form(uint32_t word)
{
    switch (hfn_arm64_get_bits(word, 28, 25)) {
    case 0x0: /* reserved: udf; SME */
        if (word >> 16 == 0) {
            return HFN_ARM64_PLAIN;
        }
        return word >> 31 ? HFN_ARM64_BOUND : HFN_ARM64_NONE;
    case 0x2: return HFN_ARM64_BOUND; /* SVE */
    case 0x8:
    case 0x9:
        if (hfn_arm64_get_bits(word, 28, 24) == 0x10) {
            return word >> 31 ? HFN_ARM64_ADRP : HFN_ARM64_ADR;
        }
        /* f3800000: autiasppc, autibsppc by a PC-relative immediate */
        return (word & 0xFF80001F) == 0xF380001F ? HFN_ARM64_BOUND : HFN_ARM64_PLAIN;
    case 0xA:
    case 0xB: return get_branch_form(word);
    case 0x4:
    case 0x6:
    case 0xC:
    case 0xE:
        if ((word & 0x3B000000) == 0x18000000) { /* SIMD: opc 3 is unallocated */
            return word >> 30 == 3 && (word >> 26 & 1) ? HFN_ARM64_NONE : HFN_ARM64_LOAD_LITERAL;
        }
        return is_memory_copy(word) ? HFN_ARM64_BOUND : HFN_ARM64_PLAIN;
    case 0x5:
    case 0xD: return signs_pc(word) ? HFN_ARM64_BOUND : HFN_ARM64_PLAIN;
    case 0x7:
    case 0xF: return HFN_ARM64_PLAIN; /* floating point and SIMD */
    default: return HFN_ARM64_NONE;
    }
}

int64_t hfn_arm64_get_distance(uint32_t word, hfn_arm64_form form)
{
    switch (form) {
    case HFN_ARM64_B:
    case HFN_ARM64_BL: return hfn_arm64_get_signed_bits(word, 25, 0) * 4;
    case HFN_ARM64_B_COND:
    case HFN_ARM64_CBZ:
    case HFN_ARM64_LOAD_LITERAL: return hfn_arm64_get_signed_bits(word, 23, 5) * 4;
    case HFN_ARM64_TBZ: return hfn_arm64_get_signed_bits(word, 18, 5) * 4;
    case HFN_ARM64_ADR:
        return hfn_arm64_get_signed_bits(word, 23, 5) * 4 +
               (int64_t)hfn_arm64_get_bits(word, 30, 29);
    case HFN_ARM64_ADRP:
        return (hfn_arm64_get_signed_bits(word, 23, 5) * 4 +
                (int64_t)hfn_arm64_get_bits(word, 30, 29)) *
               4096;
    default: return 0;
    }
}

static hfn_flow get_flow(uint32_t word, hfn_arm64_form form)
{
    switch (form) {
    case HFN_ARM64_B: return HFN_FLOW_JUMP;
    case HFN_ARM64_BL: return HFN_FLOW_CALL;
    case HFN_ARM64_B_COND:
    case HFN_ARM64_CBZ:
    case HFN_ARM64_TBZ: return HFN_FLOW_JUMP_IF;
    case HFN_ARM64_BRANCH:
        switch (hfn_arm64_get_bits(word, 24, 21) & 7) {
        case 0: return HFN_FLOW_JUMP_INDIRECT;
        case 1: return HFN_FLOW_CALL_INDIRECT;
        default: return HFN_FLOW_RETURN;
        }
    default: break;
    }
    if (word >> 16 == 0) { /* udf */
        return HFN_FLOW_STOP;
    }
    if (word >> 24 == 0xD4 && /* brk, hlt */
        (hfn_arm64_get_bits(word, 23, 21) == 1 || hfn_arm64_get_bits(word, 23, 21) == 2)) {
        return HFN_FLOW_STOP;
    }
    return HFN_FLOW_NEXT;
}

/* Can a branch target this word when branch targets are enforced (C6.2, BTI; D8.4.5)?  bti, bti
 * c, bti j, bti jc; paciasp and pacibsp count too. */
static bool is_landing_pad(uint32_t word)
{
    return (word & 0xFFFFFF3F) == 0xD503241F || word == HFN_ARM64_PACIASP ||
           word == HFN_ARM64_PACIBSP;
}

bool hfn_arm64_decode(const uint8_t *bytes, uint64_t size, uint64_t rva, uint64_t link_base,
                      hfn_instruction *out)
{
    (void)link_base; /* no immediate is an absolute address */
    if (size < HFN_ARM64_BYTES || (rva & 3) != 0) {
        return false;
    }
    uint32_t word = hfn_read_le32(bytes);
    hfn_arm64_form form = hfn_arm64_get_form(word);
    if (form == HFN_ARM64_NONE) {
        return false;
    }
    memset(out, 0, sizeof *out);
    out->length = HFN_ARM64_BYTES;
    out->flow = (uint8_t)get_flow(word, form);
    out->is_padding = word == NOP;
    out->is_landing_pad = is_landing_pad(word);
    out->with_key_b = word == HFN_ARM64_PACIBSP;
    out->signs_return = word == HFN_ARM64_PACIASP || out->with_key_b;
    out->is_system = (word & 0xFFE0001F) == SVC || (word & ~31u) == HFN_ARM64_MSR_TPIDR_EL0;
    out->through_table = out->flow == HFN_FLOW_JUMP_INDIRECT;
    if (form == HFN_ARM64_PLAIN || form == HFN_ARM64_BRANCH || form == HFN_ARM64_BOUND) {
        return true;
    }
    out->relative_bytes = HFN_ARM64_BYTES;
    out->takes_address = form == HFN_ARM64_ADR;
    out->reads_memory_relative = form == HFN_ARM64_LOAD_LITERAL;
    out->target = (form == HFN_ARM64_ADRP ? rva & ~UINT64_C(4095) : rva) +
                  (uint64_t)hfn_arm64_get_distance(word, form);
    return true;
}

/* The registers that a load or store (C4.1.94) writes: those that it loads, and the base if the
 * instruction writes it back. */
static uint32_t get_registers_written_by_access(uint32_t word)
{
    uint32_t rt = 1u << (word & 31), rn = 1u << hfn_arm64_get_bits(word, 9, 5);
    uint32_t rt2 = 1u << hfn_arm64_get_bits(word, 14, 10),
             rs = 1u << hfn_arm64_get_bits(word, 20, 16);
    bool simd = word >> 26 & 1;

    if ((word & 0x3B000000) == 0x18000000) { /* literal */
        return simd ? 0 : rt;
    }
    if ((word & 0x3A000000) == 0x28000000) { /* pairs: bit 22 loads, bit 23 writes back */
        uint32_t loaded = (word >> 22 & 1) && !simd ? rt | rt2 : 0;
        return loaded | (hfn_arm64_get_bits(word, 25, 23) == 2 ? 0 : rn);
    }
    if ((word & 0x3B000000) == 0x39000000) { /* unsigned offset: opc 0 stores */
        return simd || hfn_arm64_get_bits(word, 23, 22) == 0 ? 0 : rt;
    }
    if ((word & 0x3B200000) == 0x38000000) { /* imm9: 0 unscaled, 1 post, 2 unprivileged, 3 pre */
        uint32_t loaded = simd || hfn_arm64_get_bits(word, 23, 22) == 0 ? 0 : rt;
        return loaded | (word & 0x400 ? rn : 0);
    }
    if ((word & 0x3B200C00) == 0x38200800) { /* register offset */
        return simd || hfn_arm64_get_bits(word, 23, 22) == 0 ? 0 : rt;
    }
    return rt | rn | rt2 | rs; /* exclusive, atomic, SIMD structures, tags */
}

uint32_t hfn_arm64_get_written_registers(uint32_t word)
{
    uint32_t rd = 1u << (word & 31), none = 1u << 31; /* xzr or sp */

    switch (hfn_arm64_get_bits(word, 28, 25)) {
    case 0xA:
    case 0xB: /* calls write x30; mrs and sysl write rt */
        if (word >> 24 == 0xD5) {
            return rd & ~none;
        }
        return (word & 0xFC000000) == 0x94000000 || (word & 0xFE200000) == 0xD6200000 ? 1u << 30
                                                                                      : 0;
    case 0x4:
    case 0x6:
    case 0xC:
    case 0xE: return get_registers_written_by_access(word) & ~none;
    case 0x5:
    case 0xD:
        if ((word & 0x7FE00010) == 0x7A400000 || (word & 0x7FE00010) == 0x3A400000) {
            return 0; /* ccmp, ccmn */
        }
        return rd & ~none;
    default: return rd & ~none;
    }
}

/* A call preserves x19 to x29 (AAPCS64, 6.1.1). */
#define CALL_CLOBBERED 0x4007FFFFu

static void invalidate_registers(hfn_partial_addresses *pages, uint32_t written)
{
    pages->known &= ~written;
}

/* ldr, str [xn, #imm] (Arm ARM, C4.1.94.29): log2 of the bytes. */
static uint32_t get_access_scale(uint32_t word)
{
    return (word >> 26 & 1) && (word >> 23 & 1) ? 4 : word >> 30;
}

/* The two highest bits of ldr (literal) select w, x, ldrsw, prfm; s, d, q (C4.1.94.20). */
uint32_t hfn_arm64_get_touched_bytes(const uint8_t *bytes, uint64_t size)
{
    uint32_t word = size < HFN_ARM64_BYTES ? 0 : hfn_read_le32(bytes);

    if ((word & 0x3B000000) == 0x18000000) {
        return word >> 26 & 1 ? 4u << (word >> 30) : word >> 30 == 1 ? 8 : 4;
    }
    return 1u << get_access_scale(word);
}

void hfn_arm64_complete_address(const uint8_t *bytes, hfn_partial_addresses *pages,
                                hfn_instruction *in)
{
    uint32_t word = hfn_read_le32(bytes), rd = word & 31, rn = hfn_arm64_get_bits(word, 9, 5);
    bool is_base_known = pages->known >> rn & 1;

    if ((word & 0x9F000000) == 0x90000000) { /* adrp */
        pages->page[rd] = in->target;
        pages->known |= 1u << rd;
        pages->known &= ~(1u << 31);
        return;
    }
    if ((word & 0xFF800000) == 0x91000000 && is_base_known) { /* add xd, xn, #imm */
        uint64_t shift = word >> 22 & 1 ? 12 : 0;
        in->takes_address = true;
        in->relative_bytes = HFN_ARM64_BYTES;
        in->target = pages->page[rn] + ((uint64_t)hfn_arm64_get_bits(word, 21, 10) << shift);
    } else if ((word & 0x3B000000) == 0x39000000 && is_base_known) { /* ldr, str [xn, #imm] */
        uint32_t scale = get_access_scale(word);
        in->reads_memory_relative = true;
        in->relative_bytes = HFN_ARM64_BYTES;
        in->target = pages->page[rn] + ((uint64_t)hfn_arm64_get_bits(word, 21, 10) << scale);
    }
    if (in->flow == HFN_FLOW_CALL || in->flow == HFN_FLOW_CALL_INDIRECT) {
        invalidate_registers(pages, CALL_CLOBBERED);
    } else {
        invalidate_registers(pages, hfn_arm64_get_written_registers(word));
    }
}
