/* SPDX-License-Identifier: MIT */
/* Built with -fcf-protection=full: entries begin with endbr64, and calls go through pointers. */
#include <stdlib.h>

#include "hazard.h"

enum { ROUNDS = 1000 };

COUNTED int add(int a, int b)
{
    KEEP();
    return a + b;
}

COUNTED int take(int a, int b)
{
    KEEP();
    return a - b;
}

COUNTED int order(const void *a, const void *b)
{
    KEEP();
    return *(const int *)a - *(const int *)b;
}

int tiny(void);
int jump_after(int a, int b);

FUNCTION(tiny, "endbr64\nret");
FUNCTION(jump_after, "endbr64\njmp add");

int main(void)
{
    int (*volatile table[])(int, int) = {add, take, jump_after};
    int values[2] = {2, 1};
    long sum = 0;
    for (int i = 0; i < ROUNDS; i++) {
        sum += table[i % 3](i, 2);
        tiny();
        values[0] = 2;
        values[1] = 1;
        qsort(values, 2, sizeof *values, order);
        sum += values[0];
    }
    printf("sum %ld\n", sum);
    say_total("add", 334 + 333);
    say_total("take", 333);
    say_total("order", ROUNDS);
    say_total_if_hooked("jump_after", 333);
    say_total_if_hooked("tiny", ROUNDS);
    return 0;
}
