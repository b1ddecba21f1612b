/* SPDX-License-Identifier: MIT */
/* Follows the stack: begin_stack, step_stack and is_never_shared of arch.h. */
#ifndef HFN_ARCH_X86_STACK_USE_H
#define HFN_ARCH_X86_STACK_USE_H

#include "arch/x86/decode.h"

/* Indexes in hfn_stack_state.at, after the general registers.  KEPT: i386, where the pointer to the
 * arguments was saved.  COUNT: the constant in rcx, if the value is exact.  VECTOR: registers of
 * hfn_x86_data, joined over the words of each. */
#define HFN_X86_KEPT 16
#define HFN_X86_COUNT 17
#define HFN_X86_VECTOR 18

void hfn_x86_begin_stack(hfn_x86_mode mode, hfn_stack_state *state);
hfn_stack_outcome hfn_x86_step_stack(hfn_x86_mode mode, const uint8_t *bytes, uint64_t size,
                                     uint64_t rva, hfn_stack_state *state);
hfn_stack_outcome hfn_x86_leave_stack(hfn_x86_mode mode, const hfn_stack_state *state);
/* apply_condition of arch.h. */
void hfn_x86_apply_condition(hfn_x86_mode mode, const uint8_t *bytes, uint64_t size, bool is_taken,
                             hfn_stack_state *state);
/* Does the instruction read or write the stack pointer?  LLVM does not outline such instructions
 * (lib/Target/X86/X86InstrInfo.cpp, getOutliningType). */
bool hfn_x86_uses_stack(hfn_x86_mode mode, const uint8_t *bytes, uint64_t size);

#endif
