/* SPDX-License-Identifier: MIT */
/* Making written instructions visible to the processor that runs them. */
#ifndef HFN_OS_LINUX_FLUSH_H
#define HFN_OS_LINUX_FLUSH_H

#include <stdint.h>

/* HOT PATH: no libc.  x86 keeps its caches coherent (Intel SDM vol. 3, 8.1.3; the other threads are
 * serialised by membarrier).  AArch64 does not: Arm ARM, B2.4.4: clean the data cache to the point
 * of unification, invalidate the instruction cache, then a context synchronisation here and on
 * every other thread (membarrier SYNC_CORE, or the return from the signal that parked it). */
static inline void hfn_linux_flush_code(uint64_t address, uint64_t byte_count)
{
#if defined(__aarch64__)
    uint64_t type, data_line, code_line, end = address + byte_count;

    __asm__ volatile("mrs %0, ctr_el0" : "=r"(type)); /* D17.2.34: lines as log2 of words */
    data_line = UINT64_C(4) << (type >> 16 & 15);
    code_line = UINT64_C(4) << (type & 15);
    for (uint64_t at = address & ~(data_line - 1); at < end; at += data_line) {
        __asm__ volatile("dc cvau, %0" : : "r"(at) : "memory");
    }
    __asm__ volatile("dsb ish" : : : "memory");
    for (uint64_t at = address & ~(code_line - 1); at < end; at += code_line) {
        __asm__ volatile("ic ivau, %0" : : "r"(at) : "memory");
    }
    __asm__ volatile("dsb ish\n\tisb" : : : "memory");
#else
    (void)address;
    (void)byte_count;
#endif
}

#endif
