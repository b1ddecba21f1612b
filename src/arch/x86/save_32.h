/* SPDX-License-Identifier: MIT */
/* For i386 assembly: pushes a register and tells unwinders where it lies; takes it back. */
#ifndef HFN_ARCH_X86_SAVE_32_H
#define HFN_ARCH_X86_SAVE_32_H

.macro  save register
    pushl   %\register
    .cfi_adjust_cfa_offset 4
    .cfi_rel_offset \register, 0
.endm
.macro  restore register
    popl    %\register
    .cfi_adjust_cfa_offset -4
    .cfi_restore \register
.endm

#endif
