/* SPDX-License-Identifier: MIT */
/* System calls without libc: no errno, no cancellation point, no PLT, nothing that a hook could stand
 * in.  For code that runs while text is patched, or inside a thread of somebody else. */
#ifndef HFN_OS_LINUX_RAW_H
#define HFN_OS_LINUX_RAW_H

#include <stdint.h>
#include <sys/syscall.h>

/* The kernel's answer: a value, or -errno in [-4095, -1]. */
static inline long hfn_raw6(long number, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e,
                            uint64_t f)
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
#else
#error "src/os/linux/raw.h: no system call for this CPU yet"
#endif
}

static inline long hfn_raw4(long number, uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
    return hfn_raw6(number, a, b, c, d, 0, 0);
}

static inline long hfn_raw3(long number, uint64_t a, uint64_t b, uint64_t c)
{
    return hfn_raw6(number, a, b, c, 0, 0, 0);
}

static inline uint64_t hfn_raw_pointer(const volatile void *pointer)
{
    return (uint64_t)(uintptr_t)pointer;
}

#endif
