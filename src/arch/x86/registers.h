/* SPDX-License-Identifier: MIT */
/* What an instruction does to general registers, as far as it matters for whether one is dead. */
#ifndef HFN_ARCH_X86_REGISTERS_H
#define HFN_ARCH_X86_REGISTERS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct hfn_x86_register_use {
    uint32_t reads; /* bit n: what register n (or a part of it) holds matters */
    uint32_t kills; /* surely gets a new value, all 64 bits; never in reads    */
} hfn_x86_register_use;

/* Of a whole instruction of `length` bytes.  False if it is not known, or does what only the kernel
 * could tell. */
bool hfn_x86_find_register_use(const uint8_t *bytes, uint8_t length, hfn_x86_register_use *out);

/* The same for the commonest instructions without asking Zydis; false for all others. */
bool hfn_x86_find_common_register_use(const uint8_t *bytes, uint8_t length,
                                      hfn_x86_register_use *out);

#endif
