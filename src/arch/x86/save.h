/* SPDX-License-Identifier: MIT */
/* For assembly: pushes a register and tells unwinders where it lies; takes it back. */
#ifndef HFN_ARCH_X86_SAVE_H
#define HFN_ARCH_X86_SAVE_H

.macro  save register
    pushq   %\register
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset \register, 0
.endm
.macro  restore register
    popq    %\register
    .cfi_adjust_cfa_offset -8
    .cfi_restore \register
.endm

#endif
