/* SPDX-License-Identifier: MIT */
/* How to unwind from inside moved instructions, as DWARF call frame instructions ready to be copied. */
#ifndef HFN_HOOKS_CFI_STEPS_H
#define HFN_HOOKS_CFI_STEPS_H

#include "arch/arch.h"

/* Write at most out_bytes; from the state CFA = rsp + 8 at moved->bytes[0].  The answer is the number
 * of bytes, 0 if nothing changes; UINT32_MAX if it does not fit. */
uint32_t hfn_cfi_steps(const hfn_moved *moved, uint8_t *out, uint32_t out_bytes);

/* Only instructions that hfn_cfi_steps writes, and how far they advance. */
bool hfn_cfi_steps_check(const uint8_t *cfi, uint32_t byte_count, uint32_t *advanced);

#endif
