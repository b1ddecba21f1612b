/* SPDX-License-Identifier: MIT */
/* System calls that may continue with another stack: may_switch_stack of arch.h. */
#ifndef HFN_ARCH_ARM64_SYSTEM_CALLS_H
#define HFN_ARCH_ARM64_SYSTEM_CALLS_H

#include "arch/arch.h"

bool hfn_arm64_may_switch_stack(const hfn_straight_line *line);

bool hfn_arm64_is_signal_restorer(const uint8_t *bytes, uint64_t size);

#endif
