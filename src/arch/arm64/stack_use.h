/* SPDX-License-Identifier: MIT */
/* Following the stack: what arch.h promises. */
#ifndef HFN_ARCH_ARM64_STACK_USE_H
#define HFN_ARCH_ARM64_STACK_USE_H

#include "arch/arch.h"

/* Places in hfn_stack_state: x0 to x30 by number, sp, and where in the frame the return address lies. */
#define HFN_ARM64_RETURN_PLACE 32u

void hfn_arm64_begin_stack(hfn_stack_state *state);
hfn_stack_outcome hfn_arm64_step_stack(const uint8_t *bytes, uint64_t size, uint64_t rva,
                                       hfn_stack_state *state);

/* stp or ldp of x30 and another, as of a frame record: LLVM's outliner leaves x30 alone, and keeps it by itself
 * where it must. */
bool hfn_arm64_saves_link(const uint8_t *bytes, uint64_t size);

#endif
