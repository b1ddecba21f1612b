/* SPDX-License-Identifier: MIT */
/* A program whose code is farther apart than a branch reaches (128 MiB): the test's linker
 * script places .far at 300 MiB, with nothing in between. */
#include <stdio.h>

#define OWN __attribute__((noinline, noclone))
#define FAR OWN __attribute__((section(".far")))

OWN long near_one(long x)
{
    __asm__ volatile("");
    return x + 1;
}
OWN long near_two(long x)
{
    return near_one(x) * 2;
}
FAR long far_one(long x)
{
    __asm__ volatile("");
    return x - 3;
}
FAR long far_two(long x)
{
    return far_one(x) ^ 5;
}

int main(void)
{
    long (*volatile far)(long) = far_two;
    volatile long sum = 0;

    for (long i = 0; i < 1000; i++) {
        sum += near_two(i) + far(i);
    }
    printf("%ld\n", sum);
    return 0;
}
