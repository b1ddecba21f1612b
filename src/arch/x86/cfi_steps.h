/* SPDX-License-Identifier: MIT */
/* How to unwind from inside moved instructions, as DWARF call frame instructions ready to be copied. */
#ifndef HFN_ARCH_X86_CFI_STEPS_H
#define HFN_ARCH_X86_CFI_STEPS_H

#include "arch/x86/decode.h"

/* Write at most out_bytes; from the state of an entry at moved->bytes[0].  The answer is the number of
 * bytes, 0 if nothing changes; UINT32_MAX if it does not fit. */
uint32_t hfn_x86_write_cfi(hfn_x86_mode mode, const hfn_moved *moved, uint8_t *out,
                           uint32_t out_bytes);

#endif
