/* SPDX-License-Identifier: MIT */
/* The general registers that an instruction reads and overwrites, for the analysis of liveness. */
#ifndef HFN_ARCH_X86_REGISTERS_H
#define HFN_ARCH_X86_REGISTERS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct hfn_x86_register_use {
    uint32_t reads; /* bit n: the instruction depends on register n or a part of it */
    uint32_t kills; /* always overwritten, all 64 bits; disjoint from reads         */
} hfn_x86_register_use;

/* Decode a whole instruction of `length` bytes.  False if it is invalid or enters the kernel or a
 * transaction. */
bool hfn_x86_find_register_use(const uint8_t *bytes, uint8_t length, hfn_x86_register_use *out);

/* The same for the most common instructions, without Zydis; false for all others. */
bool hfn_x86_find_common_register_use(const uint8_t *bytes, uint8_t length,
                                      hfn_x86_register_use *out);

#endif
