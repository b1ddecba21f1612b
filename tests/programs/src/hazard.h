/* SPDX-License-Identifier: MIT */
/*
 * For programs about one hazard: FUNCTION(name, body) writes a function in assembly, exactly these
 * bytes, with type and size, 16 bytes aligned and int3 behind it so that nothing runs on unseen.
 */
#ifndef HAZARD_H
#define HAZARD_H

#include "totals.h"

#define FUNCTION_AT(align, name, body)                                                             \
    __asm__(".text\n.p2align " #align ", 0xcc\n"                                                   \
            ".globl " #name "\n.type " #name ", @function\n" #name ":\n"                            \
            ".cfi_startproc\n" body "\n.cfi_endproc\n"                                             \
            ".size " #name ", . - " #name "\n")

#define FUNCTION(name, body) FUNCTION_AT(4, name, body)

/* No padding in front: it follows the one before it directly. */
#define FUNCTION_CLOSE(name, body) FUNCTION_AT(0, name, body)

#endif
