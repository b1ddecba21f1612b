/* SPDX-License-Identifier: MIT */
/*
 * Finds code that sets thread pointers: `msr tpidr_el0` (Arm ARM, C5.2), and clone and clone3,
 * whose number is moved to x8 before `svc`.  Their flags are made by two instructions, so all calls
 * count.
 */
#include "arch/arm64/thread_pointer.h"

#include "arch/arm64/decode.h"

enum { CLONE = 220, CLONE3 = 435, LINE_WORDS = 16 }; /* Linux, include/uapi/asm-generic/unistd.h */

#define MOV_X8 0xD2800008u /* mov x8, #imm16; without the top bit: w8 */

uint32_t hfn_arm64_find_thread_evidence(const uint8_t *bytes, uint64_t size, uint64_t at,
                                        const hfn_instruction *in)
{
    (void)size;
    if (!in->is_system) {
        return 0;
    }
    if ((hfn_read_le32(bytes + at) & ~31u) == HFN_ARM64_MSR_TPIDR_EL0) {
        return HFN_THREAD_POINTER_SET;
    }
    for (uint32_t i = 1; i <= LINE_WORDS && at >= i * HFN_ARM64_BYTES; i++) {
        uint32_t word = hfn_read_le32(bytes + at - i * HFN_ARM64_BYTES) | 1u << 31;
        uint32_t number = hfn_arm64_get_bits(word, 20, 5);
        if ((word & 0xFFE0001F) == MOV_X8) {
            return number == CLONE || number == CLONE3 ? HFN_THREAD_MADE | HFN_THREAD_FLAGS : 0;
        }
    }
    return 0;
}
