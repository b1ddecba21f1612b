/* SPDX-License-Identifier: MIT */
/* An ifunc: its resolver runs once, before any constructor, and calls reach the function that it
 * selects. */
#include "hazard.h"

enum { ROUNDS = 1000 };

COUNTED int chosen(int n)
{
    KEEP();
    return n + 1;
}

COUNTED int not_chosen(int n)
{
    KEEP();
    return n - 1;
}

__attribute__((used)) static int (*resolve(void))(int)
{
    return chosen;
}

__attribute__((ifunc("resolve"))) int indirect(int n);

int main(void)
{
    int (*volatile pointer)(int) = indirect;
    long sum = 0;
    for (int i = 0; i < ROUNDS; i++)
        sum += indirect(i) + pointer(i);
    printf("sum %ld\n", sum);
    say_total("chosen", 2 * ROUNDS);
    say_total("not_chosen", 0);
    return 0;
}
