/* SPDX-License-Identifier: MIT */
/* Calls a tiny function 10^9 times, or as many thousand times as the argument.  Prints the CPU
 * time of the process in seconds. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define CALLED __attribute__((noinline, noclone))

CALLED void tiny(void)
{
    __asm__ volatile("nop; nop; nop; nop; nop");
}

CALLED void thousand(void)
{
    for (int i = 0; i < 1000; i++) {
        tiny();
    }
}

int main(int argc, char **argv)
{
    long rounds = argc > 1 ? atol(argv[1]) : 1000000;
    struct timespec t;
    for (long i = 0; i < rounds; i++) {
        thousand();
    }
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    printf("%.6f\n", (double)t.tv_sec + (double)t.tv_nsec / 1e9);
    return 0;
}
