/* SPDX-License-Identifier: MIT */
/* Follows the stack: begin_stack, step_stack and is_never_shared of arch.h. */
#ifndef HFN_ARCH_ARM64_STACK_USE_H
#define HFN_ARCH_ARM64_STACK_USE_H

#include "arch/arch.h"

/* Indexes in hfn_stack_state.at: x0 to x30 and sp by number, then the place of the saved return
 * address. */
#define HFN_ARM64_RETURN_PLACE 32u

void hfn_arm64_begin_stack(hfn_stack_state *state);
hfn_stack_outcome hfn_arm64_step_stack(const uint8_t *bytes, uint64_t size, uint64_t rva,
                                       hfn_stack_state *state);

hfn_stack_outcome hfn_arm64_leave_stack(const hfn_stack_state *state);

/* Is it a stp or ldp with x30, as for a frame record?  LLVM's outliner moves no such instruction
 * into the functions that it makes, and these save x30 by other instructions. */
bool hfn_arm64_saves_link(const uint8_t *bytes, uint64_t size);

#endif
