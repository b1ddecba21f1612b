/* SPDX-License-Identifier: MIT */
/* Going on behind moved instructions: what arch.h promises of run_on. */
#ifndef HFN_ARCH_X86_RUN_ON_H
#define HFN_ARCH_X86_RUN_ON_H

#include "arch/arch.h"

uint32_t hfn_x86_run_on(const hfn_run *run, uint64_t address, uint8_t *out);

#endif
