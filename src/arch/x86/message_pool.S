/* SPDX-License-Identifier: MIT */
/* The pool of functions for methods that may take arguments from the stack, for x86-64. */
#define HFN_POOL_FILL 0xcc
#include "arch/method_pool.h"

.macro  function
    endbr64
    .if n & 1
    jmpq    *targets + 8 * n(%rip)
    .else
    subq    $8, %rsp
    .cfi_adjust_cfa_offset 8
    callq   *targets + 8 * n(%rip)
    addq    $8, %rsp
    .cfi_adjust_cfa_offset -8
    retq
    .endif
.endm

    all_functions
