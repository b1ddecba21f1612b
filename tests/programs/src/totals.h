/* SPDX-License-Identifier: MIT */
/* Functions whose number of calls is known from the source. COUNTED prevents inlining, cloning
 * and removal; say_total() prints `total NAME N`, which the tests compare with hotfn's report. */
#ifndef TOTALS_H
#define TOTALS_H

#include <stdio.h>

#ifdef __clang__
#define COUNTED __attribute__((noinline, used))
#else
#define COUNTED __attribute__((noipa, used))
#endif

/* For a function that would otherwise have no effect. */
#define KEEP() __asm__ volatile("" ::: "memory")

static inline void say_total(const char *function, unsigned long long calls)
{
    printf("total %s %llu\n", function, calls);
}

/* `total? NAME N`: hotfn may refuse to hook this function, but if it hooks it, it counts N. */
static inline void say_total_if_hooked(const char *function, unsigned long long calls)
{
    printf("total? %s %llu\n", function, calls);
}

/* `refused NAME REASON`: hotfn must refuse to hook this function, for this reason. */
static inline void say_refused(const char *function, const char *reason)
{
    printf("refused %s %s\n", function, reason);
}

/* A loop back to the function's first byte: hotfn counts calls, or reports that it counts both. */
static inline void say_total_or(const char *function, unsigned long long calls,
                                unsigned long long with_loops)
{
    printf("total? %s %llu|%llu\n", function, calls, with_loops);
}

#endif
