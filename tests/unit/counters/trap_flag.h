/* SPDX-License-Identifier: MIT */
/* The trap flag (Intel SDM vol. 3, 18.3.1.4): while it is set, each instruction is followed by a
 * SIGTRAP. */
#ifndef HFN_TESTS_COUNTERS_TRAP_FLAG_H
#define HFN_TESTS_COUNTERS_TRAP_FLAG_H

#if defined(__has_feature)
#define UNDER_TSAN __has_feature(thread_sanitizer) /* it delays signals */
#else
#define UNDER_TSAN 0
#endif
#if (defined(__x86_64__) || defined(__i386__)) && !UNDER_TSAN && !defined(__SANITIZE_THREAD__)
#define CAN_STEP 1
#endif

#if defined(__x86_64__)
#define TRAP_FLAG(change)                                                                          \
    "lea -128(%%rsp), %%rsp; pushfq; " change ", (%%rsp); popfq; lea 128(%%rsp), %%rsp"
#else
#define TRAP_FLAG(change) "pushfl; " change ", (%%esp); popfl"
#endif

static inline void trap_flag_set(void)
{
    __asm__ volatile(TRAP_FLAG("orl $0x100")::: "memory", "cc");
}

static inline void trap_flag_clear(void)
{
    __asm__ volatile(TRAP_FLAG("andl $~0x100")::: "memory", "cc");
}

#endif
