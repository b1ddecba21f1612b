/* SPDX-License-Identifier: MIT */
/* The size of a pool of functions for methods, for C and for assembly. */
#ifndef HFN_ARCH_METHOD_POOL_NUMBERS_H
#define HFN_ARCH_METHOD_POOL_NUMBERS_H

/* A power of two. */
#define HFN_POOL_FUNCTIONS 16384
#ifndef HFN_POOL_FUNCTION_BYTES
#define HFN_POOL_FUNCTION_BYTES 32
#endif
/* Windows: words of arguments on the stack that the pool can pass to a method, and with the four
 * arguments in registers the most arguments of such a method. */
#define HFN_POOL_STACK_WORDS 6
#define HFN_POOL_MAX_ARGUMENTS 10

#ifdef __ASSEMBLER__
    /* The addresses of all functions of the pool. */
.macro  all_addresses
    .set    n, 0
    .rept   HFN_POOL_FUNCTIONS
    .quad   functions + HFN_POOL_FUNCTION_BYTES * n
    .set    n, n + 1
    .endr
.endm
#endif

#endif
