/* SPDX-License-Identifier: MIT */
/* Instructions whose addresses a program's fault handler may compare with its own list: find_fault,
 * get_address_use and reads_context of arch.h. */
#ifndef HFN_ARCH_X86_ADDRESS_USE_H
#define HFN_ARCH_X86_ADDRESS_USE_H

#include "arch/x86/decode.h"

uint32_t hfn_x86_find_fault(hfn_x86_mode mode, const uint8_t *bytes, uint64_t size,
                            uint32_t byte_count);
hfn_address_use hfn_x86_get_address_use(hfn_x86_mode mode, const uint8_t *bytes, uint64_t size,
                                        uint64_t rva);
bool hfn_x86_reads_context(hfn_x86_mode mode, const uint8_t *bytes, uint64_t size);

#endif
