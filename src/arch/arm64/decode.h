/* SPDX-License-Identifier: MIT */
/* Decodes A64 instructions: decode, complete and touched_bytes of arch.h, and what moving code,
 * following the stack and jump tables need.  Encodings: Arm ARM (DDI 0487), chapter C4. */
#ifndef HFN_ARCH_ARM64_DECODE_H
#define HFN_ARCH_ARM64_DECODE_H

#include "arch/arch.h"
#include "base/byte_order.h"

#define HFN_ARM64_BYTES 4u /* of every instruction */

#define HFN_ARM64_PACIASP 0xD503233Fu /* signs x30 with sp as modifier */
#define HFN_ARM64_PACIBSP 0xD503237Fu
#define HFN_ARM64_AUTIASP 0xD50323BFu
#define HFN_ARM64_AUTIBSP 0xD50323FFu
#define HFN_ARM64_MSR_TPIDR_EL0 0xD51BD040u /* msr tpidr_el0, x0 */

/* Classes of instructions, by how they are moved. */
typedef enum hfn_arm64_form {
    HFN_ARM64_PLAIN = 0, /* has the same effect at every address                                  */
    HFN_ARM64_B,         /* b                                                                    */
    HFN_ARM64_BL,        /* bl                                                                   */
    HFN_ARM64_B_COND,    /* b.cond, bc.cond                                                      */
    HFN_ARM64_CBZ,       /* cbz, cbnz                                                            */
    HFN_ARM64_TBZ,       /* tbz, tbnz                                                            */
    HFN_ARM64_ADR,
    HFN_ARM64_ADRP,
    HFN_ARM64_LOAD_LITERAL, /* ldr, ldrsw, prfm                                                  */
    HFN_ARM64_BRANCH,       /* br, blr, ret and their signed forms, eret                         */
    HFN_ARM64_BOUND,        /* valid, but depends on its neighbours or its own address: SVE and SME,
                             * the memory copies of FEAT_MOPS, pointer authentication by PC */
    HFN_ARM64_NONE          /* no instruction                                                    */
} hfn_arm64_form;

hfn_arm64_form hfn_arm64_get_form(uint32_t word);
/* The distance in bytes that a PC-relative form adds to its own address (ADRP: to its page). */
int64_t hfn_arm64_get_distance(uint32_t word, hfn_arm64_form form);

bool hfn_arm64_decode(const uint8_t *bytes, uint64_t size, uint64_t rva, uint64_t link_base,
                      hfn_instruction *out);

/* A superset of the general registers that the instruction writes (bit n: xn; without sp). */
uint32_t hfn_arm64_get_written_registers(uint32_t word);

/* Does a floating point or SIMD instruction convert, move or copy from or to a general register? */
static inline bool hfn_arm64_uses_general_register(uint32_t word)
{
    return (word & 0x5F200000) == 0x1E000000 || (word & 0x5F20FC00) == 0x1E200000 ||
           (word & 0x9FE08400) == 0x0E000400; /* dup, ins, umov, smov */
}

/* Two instructions make an address: adrp, then an add or a load. */
void hfn_arm64_complete_address(const uint8_t *bytes, hfn_partial_addresses *pages,
                                hfn_instruction *in);
/* touched_bytes of arch.h. */
uint32_t hfn_arm64_get_touched_bytes(const uint8_t *bytes, uint64_t size);

/* Bits [high:low] of word, unsigned and signed. */
static inline uint32_t hfn_arm64_get_bits(uint32_t word, uint32_t high, uint32_t low)
{
    return word << (31 - high) >> (31 - high + low);
}

static inline int64_t hfn_arm64_get_signed_bits(uint32_t word, uint32_t high, uint32_t low)
{
    return (int32_t)(word << (31 - high)) >> (31 - high + low);
}

#endif
