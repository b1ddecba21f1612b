/* SPDX-License-Identifier: MIT */
/* Targets of indirect jumps: dispatch of arch.h. */
#ifndef HFN_ARCH_X86_DISPATCH_H
#define HFN_ARCH_X86_DISPATCH_H

#include "arch/x86/decode.h"

void hfn_x86_describe_dispatch(hfn_x86_mode mode, const hfn_straight_line *line, hfn_dispatch *out);

#endif
