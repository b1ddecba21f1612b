/* SPDX-License-Identifier: MIT */
/* Targets of indirect jumps: dispatch of arch.h. */
#ifndef HFN_ARCH_ARM64_DISPATCH_H
#define HFN_ARCH_ARM64_DISPATCH_H

#include "arch/arch.h"

void hfn_arm64_describe_dispatch(const hfn_straight_line *line, hfn_dispatch *out);

#endif
