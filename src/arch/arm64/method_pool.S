/* SPDX-License-Identifier: MIT */
/* The pool of functions for methods, for ARM64. */
#define HFN_POOL_FILL 0
#include "arch/method_pool.h"
#include "arch/arm64/pool_call.h"

.macro  function
    hint    34 /* bti c */
    call_target
.endm

    all_functions
