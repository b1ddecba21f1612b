/* SPDX-License-Identifier: MIT */
/* A register that is dead at an entry: what arch.h promises. */
#ifndef HFN_ARCH_X86_SCRATCH_H
#define HFN_ARCH_X86_SCRATCH_H

#include <stdint.h>

/* All such registers of those that a function need not keep: bit n is number n. */
uint32_t hfn_x86_find_dead_registers(const uint8_t *bytes, uint64_t size, uint64_t rva,
                                     uint64_t at);
uint8_t hfn_x86_find_scratch_register(const uint8_t *bytes, uint64_t size, uint64_t rva,
                                      uint64_t at);

#endif
