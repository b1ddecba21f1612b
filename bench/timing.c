/* SPDX-License-Identifier: MIT */
/* Compares a timed call with two bare readings of the TSC, alternating in one run.  Prints
 * nanoseconds per call, the minimum of the rounds, for each of `threads` threads: bare, one
 * call, half of a nested call. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <x86intrin.h>

#define OWN __attribute__((noinline, noclone))
#define CALLS 10000 /* a round is much shorter than a scheduling time slice */

enum { ROUNDS = 400, KINDS = 3 };

typedef uint64_t (*call_fn)(uint64_t);

OWN uint64_t timed_leaf(uint64_t x)
{
    __asm__ volatile("" : "+r"(x));
    return x + 1;
}

OWN uint64_t timed_outer(uint64_t x)
{
    /* moves the call behind the patched bytes, else the function is counted only */
    __asm__ volatile("leaq 1(%0), %0; leaq -1(%0), %0" : "+r"(x)::"rbx");
    return timed_leaf(x) + 1;
}

OWN uint64_t bare(uint64_t x)
{
    uint64_t begin = __rdtsc(), end;

    __asm__ volatile("" : "+r"(x));
    end = __rdtsc();
    __asm__ volatile("" ::"r"(end - begin));
    return x + 1;
}

static double now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static double time_batch(call_fn call)
{
    double begin = now_ns();

    for (uint64_t i = 0; i < CALLS; i++) {
        call(i);
    }
    return (now_ns() - begin) / CALLS;
}

static void *measure(void *user)
{
    static const call_fn calls[KINDS] = { bare, timed_leaf, timed_outer };
    double *min_ns = user;

    for (int round = 0; round < ROUNDS; round++) {
        for (int kind = 0; kind < KINDS; kind++) {
            double ns = time_batch(calls[kind]);
            if (round == 0 || ns < min_ns[kind]) {
                min_ns[kind] = ns;
            }
        }
    }
    return NULL;
}

int main(int argc, char **argv)
{
    int count = argc > 1 ? atoi(argv[1]) : 1;
    double min_ns[8][KINDS];
    pthread_t threads[8];

    count = count < 1 ? 1 : count > 8 ? 8 : count;
    for (int i = 0; i < count; i++) {
        pthread_create(&threads[i], NULL, measure, min_ns[i]);
    }
    for (int i = 0; i < count; i++) {
        pthread_join(threads[i], NULL);
    }
    for (int i = 0; i < count; i++) {
        printf("%.3f %.3f %.3f\n", min_ns[i][0], min_ns[i][1], min_ns[i][2] / 2);
    }
    return 0;
}
