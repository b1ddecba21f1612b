/* SPDX-License-Identifier: MIT */
/* What instructions do that a fault handler may know by their addresses: find_fault and
 * get_address_use of arch.h. */
#ifndef HFN_ARCH_ARM64_ADDRESS_USE_H
#define HFN_ARCH_ARM64_ADDRESS_USE_H

#include "arch/arch.h"

uint32_t hfn_arm64_find_fault(const uint8_t *bytes, uint64_t size, uint32_t byte_count);
hfn_address_use hfn_arm64_get_address_use(const uint8_t *bytes, uint64_t size, uint64_t rva);
bool hfn_arm64_reads_context(const uint8_t *bytes, uint64_t size);

#endif
