/* SPDX-License-Identifier: MIT */
/* A fast decoder of the common instructions, for the scan of all code of an image. */
#ifndef HFN_ARCH_X86_DECODE_COMMON_H
#define HFN_ARCH_X86_DECODE_COMMON_H

#include "arch/arch.h"

/* hfn_x86_decode_fully for common instructions: true with the same result, or false for an
 * instruction that is rare or invalid.  Also false if size is less than
 * HFN_X86_MAX_INSTRUCTION_BYTES. */
bool hfn_x86_decode_common(const uint8_t *bytes, uint64_t size, uint64_t rva, uint64_t link_base,
                           hfn_instruction *out);

#define HFN_X86_MAX_INSTRUCTION_BYTES 15u /* Intel SDM vol. 2, 2.3.11 */

#endif
