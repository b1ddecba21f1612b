/* SPDX-License-Identifier: MIT */
/* Functions that end with a jump through a table of functions that take stack arguments: the
 * caller's arguments, left in place. In a program built for a fixed address, the jump names the
 * table but no bound. Prints a sum. */
#include <stdio.h>

#define FUNCTION __attribute__((noinline))

typedef unsigned long operation(long k, long b, long c, long d, long e, long f, long g, long h);

#define OPERATION(name, value)                                                                     \
    FUNCTION static unsigned long name(long k, long b, long c, long d, long e, long f, long g,     \
                                       long h)                                                     \
    {                                                                                              \
        return (unsigned long)(value);                                                             \
    }
OPERATION(add, k + b + c + d + e + f + g + h)
OPERATION(mix, g * 100 + h)
OPERATION(subtract, h - g - k)

static operation *const by_kind[] = { add, mix, subtract, mix, subtract };
static operation *const with_holes[] = { NULL, mix, NULL, subtract, add };

/* The loop gives the function jump targets of its own, as a switch does. */
FUNCTION unsigned long unbounded(long k, long b, long c, long d, long e, long f, long g, long h)
{
    while (k > 4)
        b += k & 3, k -= 5;
    return by_kind[k](k, b, c, d, e, f, g, h);
}

FUNCTION unsigned long bounded(long k, long b, long c, long d, long e, long f, long g, long h)
{
    for (long i = b; i > 0; i /= 7)
        c ^= i;
    if ((unsigned long)k > 4)
        return (unsigned long)c;
    return by_kind[k](k, b, c, d, e, f, g, h);
}

FUNCTION unsigned long holes(long k, long b, long c, long d, long e, long f, long g, long h)
{
    for (long i = b; i > 0; i /= 7)
        c ^= i;
    if ((unsigned long)k > 4 || !with_holes[k])
        return (unsigned long)c;
    return with_holes[k](k, b, c, d, e, f, g, h);
}

int main(void)
{
    unsigned long sum = 0;

    for (long n = 0; n < 20000; n++) {
        sum = sum * 31 + unbounded(n % 13, n, 2, 3, 4, 5, n * 7, n * 11);
        sum = sum * 31 + bounded(n % 7, n, 2, 3, 4, 5, n * 7, n * 11);
        sum = sum * 31 + holes(n % 7, n, 2, 3, 4, 5, n * 7, n * 11);
    }
    printf("%lx\n", sum);
    return 0;
}
