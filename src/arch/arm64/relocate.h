/* SPDX-License-Identifier: MIT */
/* Moves prologues: the functions move, retarget and cfi_steps of arch.h.  hfn_fixup.end holds the
 * kind of a fixup. */
#ifndef HFN_ARCH_ARM64_RELOCATE_H
#define HFN_ARCH_ARM64_RELOCATE_H

#include "arch/arch.h"

/* Values of hfn_fixup.end. */
#define HFN_ARM64_FIXUP_BRANCH 0u  /* the word at `at` is a b              */
#define HFN_ARM64_FIXUP_ADDRESS 1u /* 8 bytes at `at`: the target's address */

#define HFN_ARM64_NEGATE_RA_STATE                                                                  \
    0x2d /* DW_CFA_AARCH64_negate_ra_state: toggles whether x30 is signed */

hfn_move_result hfn_arm64_move_prologue(const uint8_t *bytes, uint64_t size, uint64_t rva,
                                        uint32_t patch_bytes, uint8_t pc_register, hfn_moved *out,
                                        uint32_t *offset);
bool hfn_arm64_make_retarget(const uint8_t *bytes, uint64_t size, uint64_t rva, hfn_moved *out);
uint32_t hfn_arm64_write_cfi(const hfn_moved *moved, uint8_t *out, uint32_t out_bytes);

/* True if the code at offset `at` may read its caller's x16 or x17, or must preserve them. */
bool hfn_arm64_are_scratch_registers_live(const uint8_t *bytes, uint64_t size, uint64_t rva,
                                          uint64_t at, const hfn_flag_reads *reads);

/* Store the number of bytes by which the instruction grows the stack (negative: shrinks it); false
 * if it changes sp by an unknown amount. */
bool hfn_arm64_get_stack_growth(uint32_t word, int32_t *growth_bytes);

#endif
