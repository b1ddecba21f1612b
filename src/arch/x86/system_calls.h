/* SPDX-License-Identifier: MIT */
/* System calls that may continue with another stack: may_switch_stack of arch.h. */
#ifndef HFN_ARCH_X86_SYSTEM_CALLS_H
#define HFN_ARCH_X86_SYSTEM_CALLS_H

#include "arch/x86/decode.h"

bool hfn_x86_may_switch_stack(hfn_x86_mode mode, const hfn_straight_line *line);
bool hfn_x86_64_is_signal_restorer(const uint8_t *bytes, uint64_t size);
bool hfn_x86_32_is_signal_restorer(const uint8_t *bytes, uint64_t size);

#endif
