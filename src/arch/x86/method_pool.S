/* SPDX-License-Identifier: MIT */
/* The pool for x86-64.  The functions have no symbols: they are found by their unwind data
 * and their addresses. */
#include "arch/method_pool.h"

    .data
    .balign 64
    .globl  hotfn_method_targets
    .type   hotfn_method_targets, @object
    .size   hotfn_method_targets, 8 * (HFN_POOL_FRAMED + HFN_POOL_PLAIN)
hotfn_method_targets:
targets:
    .skip   8 * (HFN_POOL_FRAMED + HFN_POOL_PLAIN)

    .section .data.rel.ro, "aw", @progbits
    .balign 8
    .globl  hotfn_method_functions
    .type   hotfn_method_functions, @object
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
    .p2align 5, 0xcc
    .cfi_startproc
    endbr64
    subq    $8, %rsp
    .cfi_adjust_cfa_offset 8
    callq   *targets + 8 * n(%rip)
    addq    $8, %rsp
    .cfi_adjust_cfa_offset -8
    retq
    .cfi_endproc
    .set    n, n + 1
    .endr

    .p2align 5, 0xcc
plain:
    .rept   HFN_POOL_PLAIN
    .p2align 4, 0xcc
    .cfi_startproc
    endbr64
    jmpq    *targets + 8 * n(%rip)
    .cfi_endproc
    .set    n, n + 1
    .endr

    .section .note.GNU-stack, "", @progbits
