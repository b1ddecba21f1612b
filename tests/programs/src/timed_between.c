/* SPDX-License-Identifier: MIT */
/* Functions that are only counted, called by timed functions and calling timed functions. */
#include <stdarg.h>
#include <stdio.h>

#ifdef __clang__
#define OWN __attribute__((noinline))
#else
#define OWN __attribute__((noinline, noclone))
#endif

static volatile unsigned sink;
static void *volatile back;

#define WORK(rounds)                                                                               \
    for (unsigned i = 0; i < (rounds); i++)                                                        \
    sink += i

OWN void one(unsigned rounds) { WORK(rounds); }
OWN void two(unsigned rounds) { WORK(rounds); }
OWN void three(unsigned rounds) { WORK(rounds); }

/* Reads its arguments by address, so the stub cannot copy the stack arguments: only counted. */
OWN unsigned variadic(unsigned count, ...)
{
    unsigned sum = 0;
    va_list more;

    va_start(more, count);
    for (unsigned i = 0; i < count; i++)
        sum += va_arg(more, unsigned);
    va_end(more);
    one(sum);
    return sum;
}

OWN unsigned looks(unsigned rounds)
{
    back = __builtin_return_address(0);
    two(rounds);
    return rounds;
}

/* Two counted functions in a row; this one has a larger frame. */
OWN unsigned twice(unsigned count, ...)
{
    unsigned room[40], sum = 0;
    va_list more;

    va_start(more, count);
    for (unsigned i = 0; i < 40; i++)
        room[i] = i < count ? va_arg(more, unsigned) : 0;
    va_end(more);
    for (unsigned i = 0; i < 40; i++)
        sum += room[i];
    return looks(sum) + 1;
}

OWN unsigned first(unsigned x)
{
    WORK(3 * x);
    return variadic(3, x, x, x) + 1;
}

OWN unsigned second(unsigned x)
{
    WORK(2 * x);
    return twice(2, x, x) + 1;
}

/* A recursive call through a function that is only counted. */
OWN unsigned deeper(unsigned n, unsigned x);
OWN unsigned between(unsigned count, ...)
{
    va_list more;
    unsigned n, x;

    va_start(more, count);
    n = va_arg(more, unsigned);
    x = va_arg(more, unsigned);
    va_end(more);
    three(x);
    return n > 0 ? deeper(n - 1, x) + 1 : 0;
}

OWN unsigned deeper(unsigned n, unsigned x)
{
    WORK(x);
    return between(2, n, x) + 1;
}

int main(void)
{
    unsigned sum = 0;

    for (unsigned i = 0; i < 900; i++) /* a sample times all of them except deeper's calls */
        sum += first(200) + second(300) + deeper(5, 100);
    printf("%u\n", sum);
    return 0;
}
