/* SPDX-License-Identifier: MIT */
/* The pool of functions for methods that may take arguments from the stack, for x86-64. */
#define HFN_POOL_FILL 0xcc
#include "arch/method_pool.h"
#include "arch/x86/pool_call.h"

.macro  function
    endbr64
    .if n & 1
    jmpq    *targets + 8 * n(%rip)
    .else
    call_target
    .endif
.endm

    all_functions
