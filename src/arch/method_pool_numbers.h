/* SPDX-License-Identifier: MIT */
/* The size of a pool of functions for methods, for C and for assembly. */
#ifndef HFN_ARCH_METHOD_POOL_NUMBERS_H
#define HFN_ARCH_METHOD_POOL_NUMBERS_H

/* The number is a power of two. */
#define HFN_POOL_FUNCTIONS 16384
#define HFN_POOL_FUNCTION_BYTES 32

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
