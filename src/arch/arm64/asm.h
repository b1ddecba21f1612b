/* SPDX-License-Identifier: MIT */
/* Macros for assembly: begin and end of a function, and the frame around a C function that a
 * stub calls.  The frame saves all registers that the function may change, x17 (the address at
 * which the slow path continues) and the flags, with unwind rows.  C code is compiled for
 * general registers only, so vector registers are not saved.  No file needs an executable stack. */
#ifndef HFN_ARCH_ARM64_ASM_H
#define HFN_ARCH_ARM64_ASM_H

    .section .note.GNU-stack, "", %progbits
    .text

.macro  function name, align=4
    .globl  \name
    .hidden \name
    .type   \name, %function
    .p2align \align
\name:
    .cfi_startproc
    hint    #34                         /* bti c */
.endm
.macro  end_function name
    .cfi_endproc
    .size   \name, . - \name
.endm

#define FRAME_BYTES 176

.macro  save_all
    sub     sp, sp, #FRAME_BYTES
    .cfi_adjust_cfa_offset FRAME_BYTES
    stp     x29, x30, [sp]
    .cfi_rel_offset x29, 0
    .cfi_rel_offset x30, 8
    stp     x0, x1, [sp, #16]
    stp     x2, x3, [sp, #32]
    stp     x4, x5, [sp, #48]
    stp     x6, x7, [sp, #64]
    stp     x8, x9, [sp, #80]
    stp     x10, x11, [sp, #96]
    stp     x12, x13, [sp, #112]
    stp     x14, x15, [sp, #128]
    stp     x16, x17, [sp, #144]
    mrs     x0, nzcv
    stp     x18, x0, [sp, #160]
    mov     x29, sp
.endm

.macro  restore_all
    ldp     x18, x0, [sp, #160]
    msr     nzcv, x0
    ldp     x16, x17, [sp, #144]
    ldp     x14, x15, [sp, #128]
    ldp     x12, x13, [sp, #112]
    ldp     x10, x11, [sp, #96]
    ldp     x8, x9, [sp, #80]
    ldp     x6, x7, [sp, #64]
    ldp     x4, x5, [sp, #48]
    ldp     x2, x3, [sp, #32]
    ldp     x0, x1, [sp, #16]
    ldp     x29, x30, [sp]
    .cfi_restore x29
    .cfi_restore x30
    add     sp, sp, #FRAME_BYTES
    .cfi_adjust_cfa_offset -FRAME_BYTES
.endm

#endif
