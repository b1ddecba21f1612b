/* SPDX-License-Identifier: MIT */
/* The pool of functions for methods that may take arguments from the stack, for ARM64: even
 * functions call the method, odd ones jump to it.  x16 may be changed by any call (AAPCS64,
 * 'general-purpose registers'). */
#define HFN_POOL_FILL 0
#include "arch/method_pool.h"
#include "arch/arm64/pool_call.h"

.macro  function
    hint    34 /* bti c */
    .if n & 1
    load_target
    br      x16
    .else
    call_target
    .endif
.endm

    all_functions
