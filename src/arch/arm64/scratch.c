/* SPDX-License-Identifier: MIT */
/*
 * Decides whether a stub may change x16 and x17 at an entry.  AAPCS64, 6.1.1 lets veneers change
 * them at any call, with two exceptions: the loader's lazy binding receives arguments in them
 * (glibc, _dl_runtime_resolve), and TLS descriptor resolvers preserve every register but x0 ('TLS
 * descriptors', Arm ABI).  Both are recognised by their first instructions, which read x16 or x17,
 * or save registers that ordinary functions do not save.
 */
#include "arch/arm64/decode.h"
#include "arch/arm64/relocate.h"

#define WORDS_MAX 16u
#define LDR_X0_X0_8 0xF9400400u
#define RET 0xD65F03C0u

/* May a load or store (C4.1.94) read the register, other than as its base?  As stored or swapped
 * value, or as index. */
static bool memory_may_read(uint32_t word, uint32_t reg)
{
    bool vector = word >> 26 & 1, is_rt = (word & 31) == reg && !vector;
    bool is_rt2 = hfn_arm64_get_bits(word, 14, 10) == reg && !vector;
    bool is_rm = hfn_arm64_get_bits(word, 20, 16) == reg;
    bool stores = hfn_arm64_get_bits(word, 23, 22) == 0;

    if ((word & 0x3A000000) == 0x28000000) { /* pairs */
        return !(word >> 22 & 1) && (is_rt || is_rt2);
    }
    if ((word & 0x3B000000) == 0x39000000 || (word & 0x3B200000) == 0x38000000) { /* immediates */
        return stores && is_rt;
    }
    if ((word & 0x3B200C00) == 0x38200800) { /* register offset */
        return (stores && is_rt) || is_rm;
    }
    return is_rt || is_rt2 || is_rm;
}

/* May the instruction read the register?  Immediates in a register's field count as that
 * register. */
static bool may_read(uint32_t word, uint32_t reg)
{
    switch (hfn_arm64_get_form(word)) {
    case HFN_ARM64_B:
    case HFN_ARM64_BL:
    case HFN_ARM64_B_COND:
    case HFN_ARM64_ADR:
    case HFN_ARM64_ADRP:
    case HFN_ARM64_LOAD_LITERAL: return false;
    case HFN_ARM64_CBZ:
    case HFN_ARM64_TBZ: return (word & 31) == reg;
    default: break;
    }
    if ((word & 0x1F800000) == 0x12800000) { /* movn, movz, movk */
        return (word & 0x60000000) == 0x60000000 && (word & 31) == reg;
    }
    if ((hfn_arm64_get_bits(word, 28, 25) & 14) == 8) { /* immediate */
        return hfn_arm64_get_bits(word, 9, 5) == reg;
    }
    if (word >> 24 == 0xD5) { /* system */
        return (word & 31) == reg && !(word >> 21 & 1);
    }
    bool computes = (hfn_arm64_get_bits(word, 28, 25) & 7) == 5;
    if ((hfn_arm64_get_bits(word, 28, 25) & 7) ==
        7) { /* vectors; few come from general registers */
        return hfn_arm64_uses_general_register(word) && hfn_arm64_get_bits(word, 9, 5) == reg;
    }
    if ((hfn_arm64_get_bits(word, 28, 25) & 5) == 4) {
        return hfn_arm64_get_bits(word, 9, 5) == reg || memory_may_read(word, reg);
    }
    return hfn_arm64_get_bits(word, 9, 5) == reg ||
           (computes && hfn_arm64_get_bits(word, 20, 16) == reg) ||
           (computes && hfn_arm64_get_bits(word, 14, 10) == reg &&
            (word & 0x1F000000) == 0x1B000000); /* madd and its like */
}

/* str or stp of x1 to x15 to [sp, #-n]!, which ordinary functions need not save. */
static bool saves_temporaries(uint32_t word)
{
    uint32_t rt = word & 31;
    bool pushes = (word & 0xFFF00FE0) == 0xF8100FE0 || (word & 0xFFE003E0) == 0xA9A003E0;

    return pushes && rt >= 1 && rt <= 15;
}

static bool ends_straight_code(uint32_t word)
{
    switch (hfn_arm64_get_form(word)) {
    case HFN_ARM64_B:
    case HFN_ARM64_BL:
    case HFN_ARM64_BRANCH:
    case HFN_ARM64_NONE: return true;
    default: return false;
    }
}

bool hfn_arm64_are_scratch_registers_live(const uint8_t *bytes, uint64_t size)
{
    uint32_t unwritten = 1u << 16 | 1u << 17;

    for (uint32_t i = 0; i < WORDS_MAX && size / HFN_ARM64_BYTES > i; i++) {
        uint32_t word = hfn_read_le32(bytes + i * HFN_ARM64_BYTES);
        for (uint32_t reg = 16; reg <= 17; reg++) {
            if ((unwritten >> reg & 1) && may_read(word, reg)) {
                return true;
            }
        }
        unwritten &= ~hfn_arm64_get_written_registers(word);
        if (i <= 1 && saves_temporaries(word)) {
            return true;
        }
        if (i == 0 && word == LDR_X0_X0_8 && size >= 8 && hfn_read_le32(bytes + 4) == RET) {
            return true;
        }
        if (unwritten == 0 || ends_straight_code(word)) {
            return false;
        }
    }
    return false;
}
