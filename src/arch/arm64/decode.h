/* SPDX-License-Identifier: MIT */
/* Reading A64 instructions: what arch.h promises, and what only entries and jump tables need.  The
 * encodings are those of the Arm ARM (DDI 0487), chapter C4. */
#ifndef HFN_ARCH_ARM64_DECODE_H
#define HFN_ARCH_ARM64_DECODE_H

#include "arch/arch.h"
#include "base/byte_order.h"

#define HFN_ARM64_BYTES 4u /* of every instruction */

#define HFN_ARM64_PACIASP 0xD503233Fu /* signs x30 by sp */
#define HFN_ARM64_PACIBSP 0xD503237Fu
#define HFN_ARM64_AUTIASP 0xD50323BFu
#define HFN_ARM64_AUTIBSP 0xD50323FFu

/* What an instruction is, as far as moving it needs to know. */
typedef enum hfn_arm64_form {
    HFN_ARM64_PLAIN = 0, /* means the same everywhere                                            */
    HFN_ARM64_B,         /* b                                                                    */
    HFN_ARM64_BL,        /* bl                                                                   */
    HFN_ARM64_B_COND,    /* b.cond, bc.cond                                                      */
    HFN_ARM64_CBZ,       /* cbz, cbnz                                                            */
    HFN_ARM64_TBZ,       /* tbz, tbnz                                                            */
    HFN_ARM64_ADR,
    HFN_ARM64_ADRP,
    HFN_ARM64_LOAD_LITERAL, /* ldr, ldrsw, prfm                                                  */
    HFN_ARM64_BRANCH,       /* br, blr, ret and their like, eret                                 */
    HFN_ARM64_BOUND,        /* decodes, but belongs to its neighbours or to its own address: SVE and
                             * SME, the memory copies of FEAT_MOPS, pointer authentication by PC */
    HFN_ARM64_NONE          /* no instruction                                                    */
} hfn_arm64_form;

hfn_arm64_form hfn_arm64_get_form(uint32_t word);
/* The distance in bytes that the PC-relative forms add to their own address (ADRP: to its page). */
int64_t hfn_arm64_get_distance(uint32_t word, hfn_arm64_form form);

bool hfn_arm64_decode(const uint8_t *bytes, uint64_t size, uint64_t rva, uint64_t link_base,
                      hfn_instruction *out);

/* The general registers that the instruction may write (bit n: xn; sp is not told): too many rather
 * than too few. */
uint32_t hfn_arm64_get_written_registers(uint32_t word);

/* Of floating point and SIMD: does it convert, move or copy from or to a general register? */
static inline bool hfn_arm64_uses_general_register(uint32_t word)
{
    return (word & 0x5F200000) == 0x1E000000 || (word & 0x5F20FC00) == 0x1E200000 ||
           (word & 0x9FE08400) == 0x0E000400; /* dup, ins, umov, smov */
}

/* Addresses are made in two steps: adrp, then an add or a load. */
void hfn_arm64_complete_address(const uint8_t *bytes, hfn_partial_addresses *pages,
                                hfn_instruction *in);
/* arch.h touched_bytes */
uint32_t hfn_arm64_get_touched_bytes(const uint8_t *bytes, uint64_t size);

/* Bits [high:low] of word. */
static inline uint32_t hfn_arm64_get_bits(uint32_t word, uint32_t high, uint32_t low)
{
    return word << (31 - high) >> (31 - high + low);
}

/* The same as a signed number. */
static inline int64_t hfn_arm64_get_signed_bits(uint32_t word, uint32_t high, uint32_t low)
{
    return (int32_t)(word << (31 - high)) >> (31 - high + low);
}

#endif
