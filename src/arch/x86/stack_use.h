/* SPDX-License-Identifier: MIT */
/* Follows the stack: begin_stack, step_stack and is_never_shared of arch.h. */
#ifndef HFN_ARCH_X86_STACK_USE_H
#define HFN_ARCH_X86_STACK_USE_H

#include "arch/x86/decode.h"

/* Index in hfn_stack_state.at, after the registers: i386, where the pointer to the arguments was
 * saved. */
#define HFN_X86_KEPT 16

void hfn_x86_begin_stack(hfn_x86_mode mode, hfn_stack_state *state);
hfn_stack_outcome hfn_x86_step_stack(hfn_x86_mode mode, const uint8_t *bytes, uint64_t size,
                                     uint64_t rva, hfn_stack_state *state);
/* Does the instruction read or write the stack pointer?  LLVM does not outline such instructions
 * (lib/Target/X86/X86InstrInfo.cpp, getOutliningType). */
bool hfn_x86_uses_stack(hfn_x86_mode mode, const uint8_t *bytes, uint64_t size);

#endif
