/* SPDX-License-Identifier: MIT */
/* Short functions that are called often enough that a sample represents all calls. */
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

/* A cycle of two functions, 60 calls deep. */
OWN void odd(int n);
OWN void even(int n)
{
    for (int k = 0; k < 20; k++)
        sink += k;
    if (n > 0)
        odd(n - 1);
    sink += n;
}

OWN void odd(int n)
{
    for (int k = 0; k < 20; k++)
        sink += k;
    if (n > 0)
        even(n - 1);
    sink += n;
}

OWN void cycles(void)
{
    for (int i = 0; i < 300; i++) /* short: a run of it is seldom interrupted */
        even(60);
    sink += 1;
}

OWN void doubles(int n)
{
    if (n > 0) {
        doubles(n - 1);
        doubles(n - 1);
    }
    sink += n;
}

OWN void doubling(void)
{
    doubles(16);
    sink += 1;
}

int main(void)
{
    sink = 0;
    cycles();
    doubling();
    for (int i = 0; i < 100000; i++) {
        often(i);
        if (i % 4 == 0)
            seldom(i);
    }
    printf("%ld\n", sink);
    return 0;
}
