/* SPDX-License-Identifier: MIT */
/* Finds code that sets thread pointers: find_thread_evidence of arch.h. */
#ifndef HFN_ARCH_X86_THREAD_POINTER_H
#define HFN_ARCH_X86_THREAD_POINTER_H

#include "arch/x86/decode.h"

uint32_t hfn_x86_find_thread_evidence(hfn_x86_mode mode, const uint8_t *bytes, uint64_t size,
                                      uint64_t at, const hfn_instruction *in);

#endif
