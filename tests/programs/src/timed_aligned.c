/* SPDX-License-Identifier: MIT */
/* Built with -mpreferred-stack-boundary=6: like libx264, every function relies on its caller for
 * a stack that is aligned to 64 bytes. Prints how many objects were misaligned, and a sum. */
#include <stdint.h>
#include <stdio.h>

static unsigned long misplaced;

__attribute__((noipa)) long leaf(long value)
{
    char object[64] __attribute__((aligned(64)));
    char *at = object;

    __asm__ volatile("" : "+r"(at) : : "memory");
    misplaced += ((uintptr_t)at & 63) != 0;
    return value + 1;
}

/* Functions with 0 to 10 stack arguments, after six arguments in registers. */
#define SIX long a, long b, long c, long d, long e, long f
#define CALLS(name, sum, ...)                                                                      \
    __attribute__((noipa)) long name(__VA_ARGS__)                                                  \
    {                                                                                              \
        return leaf(a + 2 * b + 3 * c + d + e + f) + (sum);                                        \
    }
CALLS(takes_0, 0, SIX)
CALLS(takes_1, g, SIX, long g)
CALLS(takes_2, g + 2 * h, SIX, long g, long h)
CALLS(takes_3, g + 2 * h + 3 * i, SIX, long g, long h, long i)
CALLS(takes_5, g + 2 * h + 3 * i + 4 * j + 5 * k, SIX, long g, long h, long i, long j, long k)
CALLS(takes_8, g + 2 * h + 3 * i + 4 * j + 5 * k + 6 * l + 7 * m + 8 * n, SIX, long g, long h,
      long i, long j, long k, long l, long m, long n)
CALLS(takes_10, g + 2 * h + 3 * i + 4 * j + 5 * k + 6 * l + 7 * m + 8 * n + 9 * o + 10 * p, SIX,
      long g, long h, long i, long j, long k, long l, long m, long n, long o, long p)

int main(void)
{
    long sum = 0;

    for (long n = 0; n < 100; n++) {
        sum += leaf(n) + takes_0(n, 2, 3, 4, 5, 6) + takes_1(n, 2, 3, 4, 5, 6, 7);
        sum += takes_2(n, 2, 3, 4, 5, 6, 7, 8) + takes_3(n, 2, 3, 4, 5, 6, 7, 8, 9);
        sum += takes_5(n, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11);
        sum += takes_8(n, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14);
        sum += takes_10(n, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16);
    }
    printf("%lu misplaced, sum %ld\n", misplaced, sum);
    return 0;
}
