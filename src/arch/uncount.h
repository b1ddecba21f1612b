/* SPDX-License-Identifier: MIT */
/*
 * Code that takes back a count and continues elsewhere.  A Go function whose stack is too small
 * calls runtime.morestack and then begins again at its entry, where it is counted again, so its
 * call of morestack is led through such code.  The return address is that of the original call.
 */
#ifndef HFN_ARCH_UNCOUNT_H
#define HFN_ARCH_UNCOUNT_H

#include <stdint.h>

enum { HFN_UNCOUNT_BYTES = 26 };

/* gs_displacement: of the word with the row's address, from the gs base; slot_displacement: of the
 * counter, from the row. */
void hfn_emit_uncount(uint8_t out[HFN_UNCOUNT_BYTES], uint64_t address, int32_t gs_displacement,
                      int32_t slot_displacement, uint64_t target);
/* Where such code at `address` continues; 0: the bytes are other code. */
uint64_t hfn_find_uncount_target(const uint8_t bytes[HFN_UNCOUNT_BYTES], uint64_t address);

#endif
