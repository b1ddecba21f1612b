/* SPDX-License-Identifier: MIT */
/*
 * Determines how an instruction changes the depth of the stack, so that stubs can be unwound at
 * every instruction.  The change is known for additions of constants and write-backs; it is unknown
 * for any other instruction that writes sp.
 */
#include "arch/arm64/decode.h"
#include "arch/arm64/relocate.h"

/* Register 31 in the field is sp, not zero, for these (Arm ARM, C1.2.5). */
static bool may_write_sp(uint32_t word)
{
    bool to_31 = (word & 31) == 31, from_31 = hfn_arm64_get_bits(word, 9, 5) == 31;
    uint32_t op0 = hfn_arm64_get_bits(word, 28, 25);

    if (op0 == 0x8 || op0 == 0x9) { /* immediate: add, sub, tags without S; and, orr, eor */
        uint32_t kind = hfn_arm64_get_bits(word, 28, 23);
        bool adds = kind == 0x22 || kind == 0x23, logical = kind == 0x24;
        return to_31 && ((adds && !(word >> 29 & 1)) || (logical && (word >> 29 & 3) != 3));
    }
    if ((word & 0x1F200000) == 0x0B200000) { /* add, sub of an extended register, without S */
        return to_31 && !(word >> 29 & 1);
    }
    if ((word & 0xFFE0FC00) == 0x9AC01000) { /* irg */
        return to_31;
    }
    if ((op0 & 5) == 4) { /* loads and stores: any that might write back */
        return from_31;
    }
    return false;
}

/* 64-bit add and sub of an immediate to sp (Arm ARM, C6.2). */
static bool adds_constant(uint32_t word, int32_t *growth_bytes)
{
    int32_t constant = (int32_t)hfn_arm64_get_bits(word, 21, 10) << (word >> 22 & 1 ? 12 : 0);

    if ((word & 0xBF8003FF) != 0x910003FF) {
        return false;
    }
    *growth_bytes = word >> 30 & 1 ? constant : -constant;
    return true;
}

/* C4.1.94: pairs with bits [25:23] 1 (post) or 3 (pre); imm9 with bits [11:10] 1 (post) or 3
 * (pre). */
static bool writes_back(uint32_t word, int32_t *growth_bytes)
{
    bool simd = word >> 26 & 1;

    if ((word & 0xFE400000) == 0x68000000) { /* stgp */
        return false;
    }
    if ((word & 0x3A800000) == 0x28800000) {
        uint32_t scale = simd ? 2 + (word >> 30) : 2 + (word >> 31);
        *growth_bytes = (int32_t)(-hfn_arm64_get_signed_bits(word, 21, 15) * (1 << scale));
        return true;
    }
    if ((word & 0x3B200400) != 0x38000400) {
        return false;
    }
    *growth_bytes = (int32_t)-hfn_arm64_get_signed_bits(word, 20, 12);
    return true;
}

/* Loads and stores with base sp that do not change it. */
static bool leaves_base(uint32_t word)
{
    return (word & 0x3B000000) == 0x39000000 || /* unsigned offset */
           (word & 0x3B800000) == 0x29000000 || /* pair, signed offset */
           (word & 0x3B800000) == 0x28000000 || /* pair, no allocate */
           (word & 0x3B200C00) == 0x38000000 || /* unscaled */
           (word & 0x3B200C00) == 0x38200800 || /* register offset */
           (word & 0x3F000000) == 0x08000000 || /* exclusive, ordered */
           (word & 0x3B000000) == 0x18000000;   /* literal: no base */
}

bool hfn_arm64_get_stack_growth(uint32_t word, int32_t *growth_bytes)
{
    *growth_bytes = 0;
    if (!may_write_sp(word)) {
        return true;
    }
    if (adds_constant(word, growth_bytes)) {
        return true;
    }
    if ((hfn_arm64_get_bits(word, 28, 25) & 5) != 4) {
        return false;
    }
    return leaves_base(word) || writes_back(word, growth_bytes);
}

/* After each instruction that moves sp (a copy, so one word) write the new CFA offset (DWARF 5,
 * 6.4.2), and after each that signs or authenticates x30 toggle its state.  Registers that the
 * prologue saves need no rows, since they are unchanged up to the jump back. */
uint32_t hfn_arm64_write_cfi(const hfn_moved *moved, uint8_t *out, uint32_t out_bytes)
{
    uint32_t used = 0, at = 0;

    for (uint32_t i = 0; i < moved->instruction_count; i++) {
        int32_t next =
            i + 1u < moved->instruction_count ? moved->cfa_delta[i + 1] : moved->cfa_delta_end;
        uint32_t end = moved->moved_at[i] + HFN_ARM64_BYTES;
        uint32_t word = hfn_read_le32(moved->bytes + moved->moved_at[i]);
        if (next == HFN_CFA_UNKNOWN || next < 0) {
            break; /* unknown from here on */
        }
        if (word == HFN_ARM64_PACIASP || word == HFN_ARM64_AUTIASP || word == HFN_ARM64_PACIBSP ||
            word == HFN_ARM64_AUTIBSP) {
            if (out_bytes - used < 2) {
                return UINT32_MAX;
            }
            out[used++] = (uint8_t)(0x40 | (end - at));
            out[used++] = HFN_ARM64_NEGATE_RA_STATE;
            at = end;
        }
        if (next == moved->cfa_delta[i]) {
            continue;
        }
        if (out_bytes - used < 5) {
            return UINT32_MAX;
        }
        out[used++] =
            (uint8_t)(0x40 | (end - at)); /* at most 96 bytes are moved, 64 before the last */
        at = end;
        out[used++] = 0x0e; /* DW_CFA_def_cfa_offset */
        for (; next >= 0x80; next >>= 7) {
            out[used++] = (uint8_t)(next | 0x80);
        }
        out[used++] = (uint8_t)next;
    }
    return used;
}
