/* SPDX-License-Identifier: MIT */
/* The body of a pool's function n: call its target from a frame, with an aligned stack, and
 * return. */
.macro  call_target
    subq    $8, %rsp
    .cfi_adjust_cfa_offset 8
    callq   *targets + 8 * n(%rip)
    addq    $8, %rsp
    .cfi_adjust_cfa_offset -8
    retq
.endm
