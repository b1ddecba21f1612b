/* SPDX-License-Identifier: MIT */
/* The pool of functions for methods, for x86-64. */
#define HFN_POOL_FILL 0xcc
#include "arch/method_pool.h"
#include "arch/x86/pool_call.h"

.macro  function
    endbr64
    call_target
.endm

    all_functions
