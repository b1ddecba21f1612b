/* SPDX-License-Identifier: MIT */
/* Indirect jumps: what arch.h promises. */
#ifndef HFN_ARCH_X86_DISPATCH_H
#define HFN_ARCH_X86_DISPATCH_H

#include "arch/arch.h"

void hfn_x86_dispatch(const hfn_line *line, hfn_dispatch *out);

#endif
