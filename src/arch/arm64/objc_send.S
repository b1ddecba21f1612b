/* SPDX-License-Identifier: MIT */
/* arch/objc_send.h for ARM64 (AAPCS64): arguments are in x0 to x7 and q0 to q7, and x8 has the
 * address of a result in memory, for which no variant of the send is needed. */
#include "arch/objc_send.h"

#define FRAME 224
#define INTEGERS 16
#define RESULT 80
#define VECTORS 96

.macro  send name, variant
    .globl  \name
    .hidden \name
    .type   \name, %function
    .p2align 4
\name:
    .cfi_startproc
    hint    34 /* bti c */
    cbz     x0, 1f
    stp     x29, x30, [sp, #-FRAME]!
    .cfi_def_cfa_offset FRAME
    .cfi_offset 29, -FRAME
    .cfi_offset 30, -FRAME + 8
    mov     x29, sp
    stp     x0, x1, [sp, #INTEGERS]
    stp     x2, x3, [sp, #INTEGERS + 16]
    stp     x4, x5, [sp, #INTEGERS + 32]
    stp     x6, x7, [sp, #INTEGERS + 48]
    str     x8, [sp, #RESULT]
    stp     q0, q1, [sp, #VECTORS]
    stp     q2, q3, [sp, #VECTORS + 32]
    stp     q4, q5, [sp, #VECTORS + 64]
    stp     q6, q7, [sp, #VECTORS + 96]
    mov     w2, #\variant
    bl      hfn_objc_choose
    mov     x16, x0
    ldp     q0, q1, [sp, #VECTORS]
    ldp     q2, q3, [sp, #VECTORS + 32]
    ldp     q4, q5, [sp, #VECTORS + 64]
    ldp     q6, q7, [sp, #VECTORS + 96]
    ldr     x8, [sp, #RESULT]
    ldp     x6, x7, [sp, #INTEGERS + 48]
    ldp     x4, x5, [sp, #INTEGERS + 32]
    ldp     x2, x3, [sp, #INTEGERS + 16]
    ldp     x0, x1, [sp, #INTEGERS]
    .cfi_remember_state
    ldp     x29, x30, [sp], #FRAME
    .cfi_def_cfa_offset 0
    .cfi_restore 29
    .cfi_restore 30
    br      x16
    .cfi_restore_state
1:  .cfi_def_cfa_offset 0
    .cfi_restore 29
    .cfi_restore 30
    adrp    x16, hfn_objc_originals + 8 * \variant
    ldr     x16, [x16, #:lo12:hfn_objc_originals + 8 * \variant]
    br      x16
    .cfi_endproc
    .size   \name, . - \name
.endm

    .section .note.GNU-stack, "", %progbits
    .text
    .hidden hfn_objc_choose
    .hidden hfn_objc_originals
    send    hfn_objc_send, HFN_OBJC_SEND
    send    hfn_objc_send_fpret, HFN_OBJC_SEND_FPRET
    send    hfn_objc_send_stret, HFN_OBJC_SEND_STRET
