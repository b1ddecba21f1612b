/* SPDX-License-Identifier: MIT */
/* For the hazard_* programs, each of which tests one hazard: FUNCTION(name, body) defines a
 * function in assembly with exactly these bytes, a type and a size, aligned to 16 bytes. An int3
 * follows it, so that falling through the end ends the program. */
#ifndef HAZARD_H
#define HAZARD_H

#include "totals.h"

#define FUNCTION_AT(align, name, body)                                                             \
    __asm__(".text\n.p2align " #align ", 0xcc\n"                                                   \
            ".globl " #name "\n.type " #name ", @function\n" #name ":\n"                            \
            ".cfi_startproc\n" body "\n.cfi_endproc\n"                                             \
            ".size " #name ", . - " #name "\n")

#define FUNCTION(name, body) FUNCTION_AT(4, name, body)

/* Without padding: the function follows the previous one directly. */
#define FUNCTION_CLOSE(name, body) FUNCTION_AT(0, name, body)

#endif
