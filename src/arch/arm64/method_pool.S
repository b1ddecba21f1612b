/* SPDX-License-Identifier: MIT */
/* The pool for ARM64.  x16 may be changed by any call (AAPCS64, 'general-purpose registers').  The
 * functions have no symbols: they are found by their unwind data. */
#include "arch/method_pool.h"

    .data
    .balign 64
    .globl  hotfn_method_targets
    .type   hotfn_method_targets, %object
    .size   hotfn_method_targets, 8 * (HFN_POOL_FRAMED + HFN_POOL_PLAIN)
hotfn_method_targets:
targets:
    .skip   8 * (HFN_POOL_FRAMED + HFN_POOL_PLAIN)

    .section .data.rel.ro, "aw", %progbits
    .balign 8
    .globl  hotfn_method_functions
    .type   hotfn_method_functions, %object
    .size   hotfn_method_functions, 8 * (HFN_POOL_FRAMED + HFN_POOL_PLAIN)
hotfn_method_functions:
    .set    n, 0
    .rept   HFN_POOL_FRAMED
    .quad   framed + HFN_POOL_FRAMED_BYTES * n
    .set    n, n + 1
    .endr
    .set    n, 0
    .rept   HFN_POOL_PLAIN
    .quad   plain + HFN_POOL_PLAIN_BYTES * n
    .set    n, n + 1
    .endr

    .text
    .p2align 5
framed:
    .set    n, 0
    .rept   HFN_POOL_FRAMED
    .cfi_startproc
    hint    34 /* bti c */
    stp     x29, x30, [sp, #-16]!
    .cfi_def_cfa_offset 16
    .cfi_offset 29, -16
    .cfi_offset 30, -8
    mov     x29, sp
    adrp    x16, targets + 8 * n
    ldr     x16, [x16, #:lo12:targets + 8 * n]
    blr     x16
    ldp     x29, x30, [sp], #16
    .cfi_def_cfa_offset 0
    .cfi_restore 29
    .cfi_restore 30
    ret
    .cfi_endproc
    .set    n, n + 1
    .endr

plain:
    .rept   HFN_POOL_PLAIN
    .cfi_startproc
    hint    34 /* bti c */
    adrp    x16, targets + 8 * n
    ldr     x16, [x16, #:lo12:targets + 8 * n]
    br      x16
    .cfi_endproc
    .set    n, n + 1
    .endr

    .section .note.GNU-stack, "", %progbits
