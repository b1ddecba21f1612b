/* SPDX-License-Identifier: MIT */
/* A program with 288 MiB of contiguous text: one_piece.ld places .middle and .end that far
 * apart. */
#include <stdio.h>

#define AT(section_name) __attribute__((noinline, section(section_name)))

AT(".text") long of_begin(long x)
{
    __asm__ volatile("");
    return x + 1;
}
AT(".middle") long of_middle(long x)
{
    __asm__ volatile("");
    return x * 2;
}
AT(".end") long of_end(long x)
{
    __asm__ volatile("");
    return x - 3;
}

int main(void)
{
    volatile long sum = 0;

    for (long i = 0; i < 1000; i++) {
        sum += of_begin(i) + of_middle(i) + of_end(i);
    }
    printf("%ld\n", sum);
    return 0;
}
