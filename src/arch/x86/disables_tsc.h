/* SPDX-License-Identifier: MIT */
/* System calls that disable the time stamp counter: disables_tsc of arch.h. */
#ifndef HFN_ARCH_X86_DISABLES_TSC_H
#define HFN_ARCH_X86_DISABLES_TSC_H

#include "arch/x86/decode.h"

bool hfn_x86_disables_tsc(hfn_x86_mode mode, const uint8_t *bytes, uint64_t size, uint64_t *at);

#endif
