/* SPDX-License-Identifier: MIT */
/* The decoder for the scan of whole texts. */
#ifndef HFN_ARCH_X86_DECODE_COMMON_H
#define HFN_ARCH_X86_DECODE_COMMON_H

#include "arch/arch.h"

/* False where it does not know the instruction, which says nothing about it: ask Zydis.  True: the
 * same answer as Zydis gives.  Wants 15 bytes to look at. */
bool hfn_x86_decode_common(const uint8_t *bytes, uint64_t size, uint64_t rva, uint64_t link_base,
                           hfn_instruction *out);

#define HFN_X86_MAX_INSTRUCTION_BYTES                                                              \
    15u /* bytes of the longest instruction: Intel SDM vol. 2, 2.3.11 */

#endif
