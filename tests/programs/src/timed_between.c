/* SPDX-License-Identifier: MIT */
/* A function that is counted only stands between the one that calls it and the one that works. */
#include <stdarg.h>
#include <stdio.h>

#define OWN __attribute__((noinline, noclone))

static volatile unsigned sink;

OWN void works(unsigned rounds)
{
    for (unsigned i = 0; i < rounds; i++)
        sink += i;
}

OWN unsigned between(unsigned count, ...)
{
    unsigned sum = 0;
    va_list more;

    va_start(more, count);
    for (unsigned i = 0; i < count; i++)
        sum += va_arg(more, unsigned);
    va_end(more);
    works(sum);
    return sum;
}

OWN unsigned calls(unsigned x) { return between(3, x, x, x) + 1; }

int main(void)
{
    unsigned sum = 0;

    for (unsigned i = 0; i < 100; i++)
        sum += calls(100000);
    printf("%u\n", sum);
    return 0;
}
