/* SPDX-License-Identifier: MIT */
/* Functions with stack arguments and much code in common: clang -Oz outlines the common code
 * into functions of its own, which read and write the frames of their callers, including the
 * arguments. */
#include <stdio.h>

#define OWN __attribute__((noinline))
#define MANY                                                                                       \
    long a, long b, long c, long d, long e, long f, long g, long h, long i, long j, long k, long l

static volatile long seen;

OWN static long use(long *p, long n)
{
    long sum = 0;

    for (long i = 0; i < n; i++) {
        sum = sum * 3 + p[i];
    }
    seen = sum;
    return sum;
}

#define SHAPE(name, compare)                                                                       \
    OWN long name(MANY)                                                                            \
    {                                                                                              \
        long x[6] = { a, b, c, d, e, f };                                                          \
        if (a compare 3) {                                                                         \
            x[0] = i, x[1] = j, x[2] = k, x[3] = l, x[4] = i + j;                                  \
            use(x, 6);                                                                             \
        } else {                                                                                   \
            x[0] = l, x[1] = 7, x[2] = i, x[3] = j, x[4] = k;                                      \
            use(x, 5);                                                                             \
        }                                                                                          \
        x[0] = i, x[1] = j, x[2] = k, x[3] = l, x[4] = i + j;                                      \
        use(x, 6);                                                                                 \
        i = seen;                                                                                  \
        return use(x, 6) + i + j + k + l + g + h;                                                  \
    }
SHAPE(one, <)
SHAPE(two, >)
SHAPE(three, ==)
SHAPE(four, !=)
SHAPE(five, <=)

int main(void)
{
    unsigned long sum = 0;

    for (long n = 0; n < 1000; n++) {
        sum = sum * 5 + (unsigned long)(one(n, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, n) +
                                        two(n, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, n) +
                                        three(n, 2, 3, 4, 5, 6, 7, 8, 9, 10, 13, n) +
                                        four(n, 2, 3, 4, 5, 6, 7, 8, 9, 10, 14, n) +
                                        five(n, 2, 3, 4, 5, 6, 7, 8, 9, 10, 15, n));
    }
    printf("%lu\n", sum);
    return 0;
}
