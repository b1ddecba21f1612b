/* SPDX-License-Identifier: MIT */
/* Short functions called often enough that a sample of their calls tells of all. */
#include <stdio.h>

#ifdef __clang__
#define OWN __attribute__((noinline))
#else
#define OWN __attribute__((noinline, noclone))
#endif

volatile long sink;

OWN void small(int i)
{
    for (int k = 0; k < 20 + i % 7; k++)
        sink += k;
}

OWN void often(int i)
{
    for (int k = 0; k < 4; k++)
        small(i + k);
    sink += i;
}

OWN void seldom(int i)
{
    small(i);
    sink += i;
}

int main(void)
{
    for (int i = 0; i < 100000; i++) {
        often(i);
        if (i % 4 == 0)
            seldom(i);
    }
    printf("%ld\n", sink);
    return 0;
}
