/* SPDX-License-Identifier: MIT */
/* The pool of functions for methods (docs/design/runtimes.md): constants that its assembly files
 * share with the library.  Function n of the pool calls the address in targets[n], with no
 * arguments on the stack.  The functions have no symbols: they are found by their unwind data and
 * their addresses. */
#ifndef HFN_ARCH_METHOD_POOL_H
#define HFN_ARCH_METHOD_POOL_H

#include "arch/method_pool_numbers.h"

/* Symbols of the pool's library. */
#define HFN_POOL_TARGETS_NAME "hotfn_method_targets"
#define HFN_POOL_FUNCTIONS_NAME "hotfn_method_functions"
/* Windows: */
#define HFN_POOL_RETURNED_NAME "hotfn_method_returned"
#define HFN_POOL_OUTPUTS_NAME "hotfn_method_outputs"

#ifdef __ASSEMBLER__
    .data
    .balign 64
    .globl  hotfn_method_targets
    .type   hotfn_method_targets, %object
    .size   hotfn_method_targets, 8 * HFN_POOL_FUNCTIONS
hotfn_method_targets:
targets:
    .skip   8 * HFN_POOL_FUNCTIONS

    .section .data.rel.ro, "aw", %progbits
    .balign 8
    .globl  hotfn_method_functions
    .type   hotfn_method_functions, %object
    .size   hotfn_method_functions, 8 * HFN_POOL_FUNCTIONS
hotfn_method_functions:
    all_addresses

    .section .note.GNU-stack, "", %progbits

    /* Expand the including file's macro `function` for each n. */
.macro  all_functions
    .text
    .p2align 5
functions:
    .set    n, 0
    .rept   HFN_POOL_FUNCTIONS
    .p2align 5, HFN_POOL_FILL
    .cfi_startproc
    function
    .cfi_endproc
    .set    n, n + 1
    .endr
.endm
#endif

#endif
