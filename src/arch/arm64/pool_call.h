/* SPDX-License-Identifier: MIT */
/* The body of a pool's function n: call its target from a frame, and return. */
.macro  load_target
    adrp    x16, targets + 8 * n
    ldr     x16, [x16, #:lo12:targets + 8 * n]
.endm

.macro  call_target
    stp     x29, x30, [sp, #-16]!
    .cfi_def_cfa_offset 16
    .cfi_offset 29, -16
    .cfi_offset 30, -8
    mov     x29, sp
    load_target
    blr     x16
    ldp     x29, x30, [sp], #16
    .cfi_def_cfa_offset 0
    .cfi_restore 29
    .cfi_restore 30
    ret
.endm
