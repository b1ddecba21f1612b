/* SPDX-License-Identifier: MIT */
/* A timed and a counted function that make calls from their cold parts, which gcc places
 * elsewhere (.cold). */
#include <stdarg.h>
#include <stdio.h>

#define OWN __attribute__((noinline, noclone))

static volatile unsigned sink;

/* Branches that lead to these calls are cold. */
OWN __attribute__((cold)) void one(unsigned rounds)
{
    for (unsigned i = 0; i < rounds; i++)
        sink += i;
}

OWN __attribute__((cold)) void two(unsigned rounds)
{
    for (unsigned i = 0; i < rounds; i++)
        sink += i;
}

OWN unsigned timed(unsigned rounds)
{
    if (rounds % 2) {
        one(rounds);
        sink++;
    }
    return sink;
}

OWN unsigned counted(unsigned rounds, ...)
{
    unsigned sum = rounds;
    va_list more;

    va_start(more, rounds);
    for (unsigned i = 0; i < 3; i++)
        sum += va_arg(more, unsigned);
    va_end(more);
    if (sum % 2) {
        two(sum);
        sink++;
    }
    return sink;
}

OWN unsigned calls_it(unsigned rounds)
{
    for (unsigned i = 0; i < rounds; i++)
        sink += i;
    return counted(1, rounds, rounds, rounds * 2) + 1;
}

int main(void)
{
    unsigned sum = 0;

    for (unsigned i = 0; i < 2000; i++)
        sum += timed(101) + calls_it(100);
    printf("%u\n", sum);
    return 0;
}
