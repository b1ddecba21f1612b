/* SPDX-License-Identifier: MIT */
/* Calls of a function that works for a while: arguments are the number of calls, and the steps of
 * work in each.  Prints the processor time and the wall time in nanoseconds.  It runs on the first
 * processor that it may use, and leaves the others to its launcher. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static volatile uint64_t sink;

__attribute__((noinline)) static void work_steps(uint64_t steps)
{
    uint64_t value = sink;

    for (uint64_t i = 0; i < steps; i++) {
        value = value * 6364136223846793005u + 1442695040888963407u;
    }
    sink = value;
}

static uint64_t read_clock(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

int main(int argc, char **argv)
{
    uint64_t calls = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000000;
    uint64_t steps = argc > 2 ? strtoull(argv[2], NULL, 10) : 1000;
    cpu_set_t own;

    CPU_ZERO(&own);
    CPU_SET(0, &own);
    if (sched_setaffinity(0, sizeof own, &own) != 0) {
        perror("the first processor");
    }
    uint64_t cpu = read_clock(CLOCK_PROCESS_CPUTIME_ID), wall = read_clock(CLOCK_MONOTONIC);
    for (uint64_t i = 0; i < calls; i++) {
        work_steps(steps);
    }
    printf("%llu %llu\n", (unsigned long long)(read_clock(CLOCK_PROCESS_CPUTIME_ID) - cpu),
           (unsigned long long)(read_clock(CLOCK_MONOTONIC) - wall));
    return 0;
}
