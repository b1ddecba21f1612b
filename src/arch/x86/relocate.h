/* SPDX-License-Identifier: MIT */
/* Moves prologues: implements move, pc_register, retarget and is_retargetable of arch.h. */
#ifndef HFN_ARCH_X86_RELOCATE_H
#define HFN_ARCH_X86_RELOCATE_H

#include "arch/arch.h"
#include "arch/x86/decode.h"

/* If the code is `mov reg, [esp]; ret`, which loads its return address: the register.  Otherwise
 * HFN_NO_REGISTER. */
uint8_t hfn_x86_find_pc_register(const uint8_t *bytes, uint64_t size);

hfn_move_result hfn_x86_move_prologue(hfn_x86_mode mode, const uint8_t *bytes, uint64_t size,
                                      uint64_t rva, uint32_t patch_bytes, uint8_t pc_register,
                                      hfn_moved *out, uint32_t *offset);
bool hfn_x86_make_retarget(hfn_x86_mode mode, const uint8_t *bytes, uint64_t size, uint64_t rva,
                           hfn_moved *out);

/* True for call, jmp and jcc rel32 without a prefix. */
bool hfn_x86_is_retargetable(const uint8_t *bytes, const hfn_instruction *in);

/* The bytes by which the instruction grows the stack (negative: shrinks it); false if it changes
 * rsp by an unknown number. */
bool hfn_x86_get_stack_growth(hfn_x86_mode mode, const uint8_t *bytes, uint64_t size,
                              int32_t *growth_bytes);

#endif
