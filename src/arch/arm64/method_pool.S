/* SPDX-License-Identifier: MIT */
/* The pool of functions for methods, for ARM64.  x16 may be changed by any call (AAPCS64,
 * 'general-purpose registers'). */
#define HFN_POOL_FILL 0
#include "arch/method_pool.h"

.macro  function
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
.endm

    all_functions
