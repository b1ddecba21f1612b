/* SPDX-License-Identifier: MIT */
/* System calls without libc: no errno, no cancellation point, no PLT, and no code that could be
 * hooked. For code that runs while code is patched, or inside a thread of the program. */
#ifndef HFN_OS_LINUX_RAW_H
#define HFN_OS_LINUX_RAW_H

#include <errno.h>
#include <stdint.h>
#include <sys/syscall.h>

#if defined(__i386__)
/* The sixth argument is passed in ebp, which unwinders may need, so this is a separate function
 * whose CFI describes where each register is saved. */
static __attribute__((naked, noinline, unused)) long hfn_raw_words(const uint32_t *number_and_words
                                                                   __attribute__((unused)))
{
#define HFN_PUSH(r) "pushl " r "\n\t.cfi_adjust_cfa_offset 4\n\t.cfi_rel_offset " r ", 0\n\t"
#define HFN_POP(r) "popl " r "\n\t.cfi_adjust_cfa_offset -4\n\t.cfi_restore " r "\n\t"
    __asm__(HFN_PUSH("%ebp") HFN_PUSH("%ebx") HFN_PUSH("%esi")
                HFN_PUSH("%edi") "movl 20(%esp), %ebp\n\t"
                                 "movl (%ebp), %eax\n\t"
                                 "movl 4(%ebp), %ebx\n\t"
                                 "movl 8(%ebp), %ecx\n\t"
                                 "movl 12(%ebp), %edx\n\t"
                                 "movl 16(%ebp), %esi\n\t"
                                 "movl 20(%ebp), %edi\n\t"
                                 "movl 24(%ebp), %ebp\n\t"
                                 "int $0x80\n\t" HFN_POP("%edi") HFN_POP("%esi") HFN_POP("%ebx")
                                     HFN_POP("%ebp") "ret");
#undef HFN_PUSH
#undef HFN_POP
}
#endif

/* All calls return the kernel's result: a value, or -errno in [-4095, -1]. */
static inline long hfn_raw_syscall6(long number, uint64_t a, uint64_t b, uint64_t c, uint64_t d,
                                    uint64_t e, uint64_t f)
{
#if defined(__x86_64__)
    register uint64_t r10 __asm__("r10") = d;
    register uint64_t r8 __asm__("r8") = e;
    register uint64_t r9 __asm__("r9") = f;
    long result;

    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
#elif defined(__aarch64__)
    register long x8 __asm__("x8") = number;
    register uint64_t x0 __asm__("x0") = a;
    register uint64_t x1 __asm__("x1") = b;
    register uint64_t x2 __asm__("x2") = c;
    register uint64_t x3 __asm__("x3") = d;
    register uint64_t x4 __asm__("x4") = e;
    register uint64_t x5 __asm__("x5") = f;

    __asm__ volatile("svc #0"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                     : "memory");
    return (long)x0;
#elif defined(__i386__)
    const uint32_t words[7] = { (uint32_t)number, (uint32_t)a, (uint32_t)b, (uint32_t)c,
                                (uint32_t)d,      (uint32_t)e, (uint32_t)f };

    return hfn_raw_words(words);
#else
#error "src/os/linux/raw.h: no system call for this CPU yet"
#endif
}

static inline long hfn_raw_syscall4(long number, uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
#if defined(__i386__)
    /* Four arguments do not need ebp, so no register is pushed and the caller's CFI stays valid. */
    long result;

    __asm__ volatile("int $0x80"
                     : "=a"(result)
                     : "0"(number), "b"((uint32_t)a), "c"((uint32_t)b), "d"((uint32_t)c),
                       "S"((uint32_t)d)
                     : "memory");
    return result;
#else
    return hfn_raw_syscall6(number, a, b, c, d, 0, 0);
#endif
}

static inline long hfn_raw_syscall3(long number, uint64_t a, uint64_t b, uint64_t c)
{
    return hfn_raw_syscall4(number, a, b, c, 0);
}

/* Map a file from offset 0, or anonymous memory (fd -1); returns the address, or 0 on failure. */
static inline uint64_t hfn_raw_map(uint64_t address, uint64_t byte_count, int protection, int flags,
                                   int fd)
{
#if defined(__i386__)
    const long number = SYS_mmap2;
#else
    const long number = SYS_mmap;
#endif
    unsigned long got;

    if (address != (uintptr_t)address || byte_count != (uintptr_t)byte_count) {
        return 0;
    }
    got = (unsigned long)hfn_raw_syscall6(number, address, byte_count, (uint64_t)protection,
                                          (uint64_t)flags, (uint64_t)(int64_t)fd, 0);
    return got >= -4095ul ? 0 : got;
}

/* Seconds and nanoseconds of a CLOCK_*. */
static inline void hfn_raw_clock(int clock, uint64_t now[2])
{
#if defined(__i386__)
    uint32_t narrow[2];

    if (hfn_raw_syscall3(SYS_clock_gettime64, (uint64_t)clock, (uintptr_t)now, 0) != -ENOSYS) {
        return;
    }
    hfn_raw_syscall3(SYS_clock_gettime, (uint64_t)clock, (uintptr_t)narrow, 0); /* before 5.1 */
    now[0] = narrow[0];
    now[1] = narrow[1];
#else
    hfn_raw_syscall3(SYS_clock_gettime, (uint64_t)clock, (uintptr_t)now, 0);
#endif
}

static inline uint64_t hfn_raw_pointer(const volatile void *pointer)
{
    return (uint64_t)(uintptr_t)pointer;
}

#endif
