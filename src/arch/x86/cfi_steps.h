/* SPDX-License-Identifier: MIT */
/* DWARF call frame instructions for unwinding from moved instructions. */
#ifndef HFN_ARCH_X86_CFI_STEPS_H
#define HFN_ARCH_X86_CFI_STEPS_H

#include "arch/x86/decode.h"

/* Write call frame instructions, which start from the state of an entry at moved->bytes[0].
 * Returns their size in bytes, 0 if nothing changes, UINT32_MAX if they do not fit out_bytes. */
uint32_t hfn_x86_write_cfi(hfn_x86_mode mode, const hfn_moved *moved, uint8_t *out,
                           uint32_t out_bytes);

#endif
