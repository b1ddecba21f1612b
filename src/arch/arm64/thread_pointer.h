/* SPDX-License-Identifier: MIT */
/* Finds code that sets thread pointers: find_thread_evidence of arch.h. */
#ifndef HFN_ARCH_ARM64_THREAD_POINTER_H
#define HFN_ARCH_ARM64_THREAD_POINTER_H

#include "arch/arch.h"

uint32_t hfn_arm64_find_thread_evidence(const uint8_t *bytes, uint64_t size, uint64_t at,
                                        const hfn_instruction *in);

#endif
