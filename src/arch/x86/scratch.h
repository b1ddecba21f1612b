/* SPDX-License-Identifier: MIT */
/* Registers that are dead at an entry: find_scratch_register of arch.h. */
#ifndef HFN_ARCH_X86_SCRATCH_H
#define HFN_ARCH_X86_SCRATCH_H

#include <stdint.h>

/* All dead registers among those that a function need not preserve; bit n is register n. */
uint32_t hfn_x86_find_dead_registers(const uint8_t *bytes, uint64_t size, uint64_t rva,
                                     uint64_t at);
uint8_t hfn_x86_find_scratch_register(const uint8_t *bytes, uint64_t size, uint64_t rva,
                                      uint64_t at);

#endif
