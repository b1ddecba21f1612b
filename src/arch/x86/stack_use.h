/* SPDX-License-Identifier: MIT */
/* Following the stack: what arch.h promises. */
#ifndef HFN_ARCH_X86_STACK_USE_H
#define HFN_ARCH_X86_STACK_USE_H

#include "arch/x86/decode.h"

/* Behind the registers in hfn_stack_state: where an address of the caller's frame was put (i386). */
#define HFN_X86_KEPT 16

void hfn_x86_begin_stack(hfn_x86_mode mode, hfn_stack_state *state);
hfn_stack_outcome hfn_x86_step_stack(hfn_x86_mode mode, const uint8_t *bytes, uint64_t size,
                                     uint64_t rva, hfn_stack_state *state);
/* LLVM's outliner leaves alone what names or moves the stack pointer (lib/Target/X86/X86InstrInfo.cpp,
 * getOutliningType). */
bool hfn_x86_uses_stack(hfn_x86_mode mode, const uint8_t *bytes, uint64_t size);

#endif
