/* SPDX-License-Identifier: MIT */
/* Differences between compilers and CPUs. */
#ifndef HFN_BASE_COMPILER_H
#define HFN_BASE_COMPILER_H

#include <stdbool.h>
#include <stdint.h>

#define HFN_LIKELY(x) __builtin_expect(!!(x), 1)
#define HFN_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define HFN_HOST_BIG_ENDIAN (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)
#define HFN_SWAP16(x) __builtin_bswap16(x)
#define HFN_SWAP32(x) __builtin_bswap32(x)
#define HFN_SWAP64(x) __builtin_bswap64(x)
#define HFN_WEAK __attribute__((weak))
#define HFN_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
/* A function that reads memory which it does not own, such as a stopped thread's stack. */
#define HFN_UNCHECKED __attribute__((no_sanitize("address"), no_sanitize("thread"), noinline))
#define HFN_COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* Attribute of a function that runs while a stub enters or leaves a hooked function: it preserves
 * every register, but not the flags.  Files that use it must be compiled with general registers
 * only.  None may be a mere wrapper: where such a function saves no register, clang 14 returns its
 * stack with `pop %rcx`. */
#if defined(__x86_64__) && defined(_WIN32)
#define HFN_KEEPS_REGISTERS __attribute__((no_caller_saved_registers, sysv_abi))
#elif defined(__x86_64__)
#define HFN_KEEPS_REGISTERS __attribute__((no_caller_saved_registers))
#else
#define HFN_KEEPS_REGISTERS
#endif

/* A 64-bit word of a structure on a program's stack: aligned as the stack is on every system. */
typedef uint64_t hfn_stack_word __attribute__((aligned(sizeof(uintptr_t))));

/* What the system puts in front of the names of C for the assembler, as a string: `_` on Windows
 * x86, else nothing. */
#define HFN_QUOTE_(x) #x
#define HFN_QUOTE(x) HFN_QUOTE_(x)
#define HFN_SYMBOL_PREFIX HFN_QUOTE(__USER_LABEL_PREFIX__)

/* A function that assembly calls, or is: by the convention of System V on every x86-64 system. */
#if defined(__x86_64__) && defined(_WIN32)
#define HFN_SYSTEM_V __attribute__((sysv_abi))
#else
#define HFN_SYSTEM_V
#endif

/* Wraps each argument of a call of a HFN_KEEPS_REGISTERS function.  clang lets such a function
 * clobber its argument registers, but its callers assume that they are preserved.  The macro passes
 * a copy that the caller does not use afterwards. */
#define HFN_PASS(x)                                                                                \
    (__extension__({                                                                               \
        __typeof__(x) passed_copy = (x);                                                           \
        __asm__("" : "+r"(passed_copy));                                                           \
        passed_copy;                                                                               \
    }))

/* Prefetch the cache line of an address, which need not be mapped.  Not __builtin_prefetch: gcc 12
 * removes the calls of a function that does nothing else. */
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
#define HFN_MAX_BELOW_FRAME 152u
#elif defined(__x86_64__) || defined(__aarch64__)
#define HFN_MAX_BELOW_FRAME 80u
#else
#define HFN_MAX_BELOW_FRAME 0u
#endif

/* May hooks of another process be changed from here (os/remote.h)? */
#if defined(__x86_64__) || defined(__aarch64__) || (defined(_WIN32) && defined(__i386__))
#define HFN_CAN_CHANGE_OTHERS 1
#else
#define HFN_CAN_CHANGE_OTHERS 0
#endif

/* Offset of the frame's CFA in libgcc's _Unwind_Context, in words.  The CFA follows the struct's
 * first field, the array reg[DWARF_FRAME_REGISTERS + 1]. */
#if defined(__aarch64__)
#define HFN_UNWIND_CFA_AT_WORD 98
#else
#define HFN_UNWIND_CFA_AT_WORD 18
#endif

/* The processor's counter.  The read is not ordered with the instructions around it, since a
 * barrier would take longer than most functions. */
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

/* Loads and stores of a tick that a signal handler of the same thread may write between any two
 * instructions.  On i386 a tick is two words, and its high word changes only every few seconds: a
 * load that the handler interrupts is repeated if the high word has changed. */
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
            /* a handler stored a later tick: this low word would put it 2^32 ticks off */
            return;
        }
        words->high = high; /* until the low word is stored, the tick lies in the future */
    }
    words->low = (uint32_t)tick;
}

/* A handler between the two instructions restores the carry flag. */
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

/* Store the tick if `expected` is there still, in one step as a handler of the same thread sees
 * it. */
static inline bool hfn_replace_tick(uint64_t *at, uint64_t expected, uint64_t tick)
{
#if defined(__x86_64__)
    bool same;

    __asm__ volatile("cmpxchgq %[tick], %[at]" /* without the lock of an access shared by threads */
                     : [at] "+m"(*at), "+a"(expected), "=@ccz"(same)
                     : [tick] "r"(tick));
    return same;
#elif defined(__i386__)
    bool same;

    __asm__ volatile("cmpxchg8b %[at]"
                     : [at] "+m"(*at), "+A"(expected), "=@ccz"(same)
                     : "b"((uint32_t)tick), "c"((uint32_t)(tick >> 32)));
    return same;
#else
    return __atomic_compare_exchange_n(at, &expected, tick, false, __ATOMIC_RELAXED,
                                       __ATOMIC_RELAXED);
#endif
}

/* Returns 0, which the processor only knows when it knows the value. */
static inline uintptr_t hfn_cpu_zero_of(uintptr_t value)
{
#if defined(__aarch64__)
    __asm__ volatile("and %0, %0, xzr" : "+r"(value));
#elif defined(__x86_64__) || defined(__i386__)
    __asm__ volatile("and $0, %0" : "+r"(value) : : "cc");
#else
    value = 0;
#endif
    return value;
}

static inline void hfn_cpu_pause(void)
{
#if defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory"); /* yield is a no-op on most processors */
#elif defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

static inline uint32_t hfn_cpu_clock_kind(void)
{
#if defined(__aarch64__)
    return 3; /* HOTFN_CLOCK_ARM */
#else
    return 1; /* HOTFN_CLOCK_TSC */
#endif
}

#endif
