/* SPDX-License-Identifier: MIT */
/* The process that bench/attach.py attaches to: many functions (functions.h), which some threads
 * call all the time.  Each line of stdin is a command, answered by one number:
 *
 *   gap    the longest time for which a thread stood since the last such command, in ns
 *   copy   the time of a plain copy of the pages with the functions, in ns
 *   call   the time of a call of a function that works for some 40 ns, in ns
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "functions.h" /* functions[], FUNCTIONS */

enum { THREADS = 2, CALLS = 400000, PAGE = 4096 };

static _Atomic uint64_t gaps[THREADS];

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void *beat(void *user)
{
    _Atomic uint64_t *gap = user;
    uint64_t last = now_ns();
    long sum = 0;

    for (uint32_t i = 0;; i++) {
        sum = functions[i * 7919u % FUNCTIONS](sum);
        uint64_t now = now_ns(), passed = now - last;
        if (passed > atomic_load_explicit(gap, memory_order_relaxed)) {
            atomic_store(gap, passed);
        }
        last = now_ns();
    }
    return NULL;
}

static uint64_t take_gap(void)
{
    uint64_t longest = 0;

    for (int i = 0; i < THREADS; i++) {
        uint64_t gap = atomic_exchange(&gaps[i], 0);
        longest = gap > longest ? gap : longest;
    }
    return longest;
}

static uint64_t copy_pages(void)
{
    uintptr_t begin = UINTPTR_MAX, end = 0;

    for (uint32_t i = 0; i < FUNCTIONS; i++) {
        uintptr_t at = (uintptr_t)functions[i];
        begin = at < begin ? at : begin;
        end = at > end ? at : end;
    }
    begin &= ~(uintptr_t)(PAGE - 1);
    end = (end + PAGE) & ~(uintptr_t)(PAGE - 1);
    uint64_t before = now_ns();
    void *copy =
        mmap(NULL, end - begin, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(copy, (const void *)begin, end - begin);
    uint64_t took = now_ns() - before;
    munmap(copy, end - begin);
    return took;
}

__attribute__((noinline)) long work_in_call(long x);
__attribute__((noinline)) long work_in_call(long x)
{
    for (int i = 0; i < 32; i++) {
        __asm__ volatile("imul $3, %0, %0" : "+r"(x));
    }
    return x;
}

/* Processor time, so that a busy machine disturbs it less. */
static uint64_t own_cpu_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static double measure_call(void)
{
    uint64_t before = own_cpu_ns();
    long sum = 1;

    for (int i = 0; i < CALLS; i++) {
        sum = work_in_call(sum);
    }
    __asm__ volatile("" : : "r"(sum));
    return (double)(own_cpu_ns() - before) / CALLS;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    char line[64];

    (void)argv;
    for (int i = 0; argc > 1 && i < THREADS; i++) {
        pthread_create(&threads[i], NULL, beat, &gaps[i]);
    }
    while (fgets(line, sizeof line, stdin)) {
        printf("%.3f\n", strncmp(line, "gap", 3) == 0    ? (double)take_gap()
                         : strncmp(line, "copy", 4) == 0 ? (double)copy_pages()
                                                         : measure_call());
        fflush(stdout);
    }
    return 0;
}
