/* SPDX-License-Identifier: MIT */
/* What differs between compilers, in one place. */
#ifndef HFN_BASE_COMPILER_H
#define HFN_BASE_COMPILER_H

#include <stdint.h>

#define HFN_LIKELY(x) __builtin_expect(!!(x), 1)
#define HFN_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define HFN_HOST_BIG_ENDIAN (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)
#define HFN_SWAP16(x) __builtin_bswap16(x)
#define HFN_SWAP32(x) __builtin_bswap32(x)
#define HFN_SWAP64(x) __builtin_bswap64(x)
#define HFN_WEAK __attribute__((weak))
#define HFN_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
/* A function that looks at memory of others on purpose: a stopped thread's stack. */
#define HFN_UNCHECKED __attribute__((no_sanitize("address"), no_sanitize("thread"), noinline))
#define HFN_COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* A function that may be called between a function and its caller: it keeps every register and no
 * flag.  Only in files that are built for general registers alone. */
#if defined(__x86_64__)
#define HFN_KEEPS_REGISTERS __attribute__((no_caller_saved_registers))
#else
#define HFN_KEEPS_REGISTERS
#endif

/* For arguments of a function that keeps registers: clang lets it spoil those that its arguments came in, and
 * its callers believe that they are kept.  So it gets a copy, which nobody looks at afterwards. */
#define HFN_PASS(x)                                                                                \
    (__extension__({                                                                               \
        __typeof__(x) passed_copy = (x);                                                           \
        __asm__("" : "+r"(passed_copy));                                                           \
        passed_copy;                                                                               \
    }))

/* It will be read soon; may be any address.  Not __builtin_prefetch: gcc 12 takes a function that does
 * nothing else for one without effect, and leaves its calls out. */
static inline void hfn_prefetch_line(uint64_t address)
{
#if defined(__x86_64__)
    __asm__ volatile("prefetcht0 (%0)" : : "r"(address));
#elif defined(__aarch64__)
    __asm__ volatile("prfm pldl1keep, [%0]" : : "r"(address));
#else
    (void)address;
#endif
}

/* Are there timing stubs for this CPU? */
#if defined(__x86_64__) || defined(__i386__) || defined(__aarch64__)
#define HFN_CAN_TIME 1
#else
#define HFN_CAN_TIME 0
#endif

/* How far below its frame a timing stub may have put a copy of the function's arguments. */
#if defined(__i386__)
#define HFN_BELOW_FRAME_MOST 152u
#elif defined(__x86_64__) || defined(__aarch64__)
#define HFN_BELOW_FRAME_MOST 80u
#else
#define HFN_BELOW_FRAME_MOST 0u
#endif

/* May hooks of another process be changed from here (os/remote.h)? */
#if defined(__x86_64__) || defined(__aarch64__)
#define HFN_CAN_CHANGE_OTHERS 1
#else
#define HFN_CAN_CHANGE_OTHERS 0
#endif

/* Where libgcc's unwinding context (_Unwind_Context) keeps the frame's CFA, in words: behind a place for
 * each register that DWARF numbers, and one. */
#if defined(__aarch64__)
#define HFN_UNWIND_CFA_AT_WORD 98
#else
#define HFN_UNWIND_CFA_AT_WORD 18
#endif

/* The processor's own counter, and what hotfn/timing.h calls it.  Not ordered against what stands
 * around it: waiting for that would cost more than most functions take. */
static inline uint64_t hfn_cpu_ticks(void)
{
#if defined(__x86_64__) || defined(__i386__)
    uint32_t low, high;

    __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
    return low | (uint64_t)high << 32;
#elif defined(__aarch64__)
    uint64_t ticks;

    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#else
    return 0;
#endif
}

/* A tick that a signal handler of the same thread may write between any two instructions: whole, also where
 * it takes two words.  Its high one changes once in seconds only. */
#if defined(__i386__)
typedef struct hfn_tick_words {
    uint32_t low, high;
} __attribute__((may_alias)) hfn_tick_words;

static inline uint64_t hfn_load_tick(const uint64_t *at)
{
    const volatile hfn_tick_words *words = (const volatile hfn_tick_words *)at;
    uint32_t low, high;

    do {
        high = words->high;
        low = words->low;
    } while (HFN_UNLIKELY(high != words->high));
    return low | (uint64_t)high << 32;
}

static inline void hfn_store_tick(uint64_t *at, uint64_t tick)
{
    volatile hfn_tick_words *words = (volatile hfn_tick_words *)at;

    uint32_t high = (uint32_t)(tick >> 32);

    if (HFN_UNLIKELY(words->high != high)) {
        if ((int32_t)(high - words->high) < 0) {
            return; /* a handler's is later: half of ours in front of it would be 2^32 ticks ago */
        }
        words->high = high; /* until the next store a tick to come: told from a past one */
    }
    words->low = (uint32_t)tick;
}

/* The flag that goes from one word to the other is the interrupted code's own. */
static inline void hfn_add_tick(uint64_t *at, uint64_t ticks)
{
    hfn_tick_words *words = (hfn_tick_words *)at;

    __asm__ volatile("addl %2, %0; adcl %3, %1"
                     : "+m"(words->low), "+m"(words->high)
                     : "ri"((uint32_t)ticks), "ri"((uint32_t)(ticks >> 32))
                     : "cc");
}
#else
static inline uint64_t hfn_load_tick(const uint64_t *at)
{
    return *at;
}

static inline void hfn_add_tick(uint64_t *at, uint64_t ticks)
{
    *at += ticks;
}

static inline void hfn_store_tick(uint64_t *at, uint64_t tick)
{
    *at = tick;
}
#endif

static inline uint32_t hfn_cpu_clock_kind(void)
{
#if defined(__aarch64__)
    return 3; /* HOTFN_CLOCK_ARM */
#else
    return 1; /* HOTFN_CLOCK_TSC */
#endif
}

#endif
