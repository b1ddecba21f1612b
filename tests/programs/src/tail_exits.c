/* SPDX-License-Identifier: MIT */
/* Functions that end in a jump to a function that cannot run behind a stub's frame: it takes
 * variable arguments, some of them on the stack, or it jumps back to the first. Two threads
 * make calls all the time, so that hooks may be installed in the middle of one. The program
 * prints a sum of the results. */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define FUNCTION __attribute__((noinline, noclone))
enum { THREADS = 2 };

FUNCTION long sum(int count, ...)
{
    va_list rest;
    long all = 0;

    va_start(rest, count);
    for (int i = 0; i < count; i++)
        all = all * 3 + va_arg(rest, long);
    va_end(rest);
    return all;
}

FUNCTION long some(long x)
{
    return x % 3 == 0 ? x : sum(3, x, x + 1, x + 2);
}

FUNCTION long relay(long n, long a, long b, long c, long d, long e, long f, long g)
{
    return n & 1 ? n * 3 : sum(8, a, b, c, d, e, f, g, a); /* arguments 7 and up are its caller's */
}

/* The stack arguments lie where sum() expects its own; this function does not touch them. */
FUNCTION long pass(int count, long a, long b, long c, long d, long e, long f, long g)
{
    return a & 1 ? b : sum(count, a + 1, b, c, d, e, f, g);
}

FUNCTION long odd(long n);

/* Too far apart for a short jump. */
FUNCTION __attribute__((aligned(256))) long even(long n)
{
    __asm__ volatile("" : "+r"(n) : : "memory");
    return n <= 0 ? 1 : odd(n - 1);
}

FUNCTION __attribute__((aligned(256))) long odd(long n)
{
    __asm__ volatile("" : "+r"(n) : : "memory");
    return n <= 0 ? 0 : even(n - 1);
}

static long rounds;

FUNCTION void *work(void *unused)
{
    long all = 0;

    (void)unused;
    for (long i = 0; i < rounds; i++)
        all += some(i) + relay(i, 1, 2, 3, 4, 5, 6, i) + pass(7, i, 2, 3, 4, 5, 6, i) +
               even(i & 7) + odd(i & 3);
    return (void *)all;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    long all = 0;

    rounds = argc > 1 ? atol(argv[1]) : 100000;
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, work, NULL) != 0)
            return 1;
    for (int i = 0; i < THREADS; i++) {
        void *one;
        pthread_join(threads[i], &one);
        all += (long)one;
    }
    printf("%ld\n", all);
}
