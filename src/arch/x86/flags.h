/* SPDX-License-Identifier: MIT */
/* Liveness of the flags: flags_live of arch.h. */
#ifndef HFN_ARCH_X86_FLAGS_H
#define HFN_ARCH_X86_FLAGS_H

#include "arch/arch.h"
#include "arch/x86/decode.h"

bool hfn_x86_are_flags_live(hfn_x86_mode mode, const uint8_t *bytes, uint64_t size, uint64_t rva,
                            uint64_t at, const hfn_flag_reads *reads, uint64_t *leaves_to);

#endif
