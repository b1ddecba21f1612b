/* SPDX-License-Identifier: MIT */
/* Functions that never return: each works until a tick of the processor's own clock, and the
 * innermost ends the program as the argument says.  Before that the program prints for each
 * function the ticks since it started, the ticks of its own work, and the ticks since just before
 * its call, because a thread may wait between any two readings.  The first line is CLOCK_MONOTONIC
 * just before these values were read. */
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CALLED __attribute__((noinline, noclone))
#define DEPTH 2

typedef struct times {
    uint64_t called, entry, own;
} times;
static times outer_times, middle_times, inner_times, worker_times;
static const char *ending;
static sem_t works;

static inline uint64_t ticks(void)
{
#ifdef __aarch64__
    uint64_t now;
    __asm__ volatile("isb; mrs %0, cntvct_el0" : "=r"(now));
    return now;
#else
    return __builtin_ia32_rdtsc();
#endif
}

static inline uint64_t monotonic_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Some milliseconds on a processor of 1 to 5 GHz; an emulated counter of 62.5 MHz needs longer. */
static inline __attribute__((always_inline)) uint64_t work(uint64_t steps)
{
#ifdef __aarch64__
    const uint64_t step = 62500;
#else
    const uint64_t step = 2000000;
#endif
    uint64_t begin = ticks(), now;
    do
        now = ticks();
    while (now - begin < steps * step);
    return now - begin;
}

static int line(char *out, size_t room, const char *name, const times *t, uint64_t now)
{
    return snprintf(out, room, "%s %llu %llu %llu\n", name, (unsigned long long)(now - t->entry),
                    (unsigned long long)t->own, (unsigned long long)(now - t->called));
}

CALLED void print_times(int all)
{
    char text[512];
    uint64_t at = monotonic_ns(), now = ticks();
    int n = snprintf(text, sizeof text, "at %llu 0 0\n", (unsigned long long)at);
    if (all) {
        n += line(text + n, sizeof text - (size_t)n, "outer", &outer_times, now);
        n += line(text + n, sizeof text - (size_t)n, "middle", &middle_times, now);
        n += line(text + n, sizeof text - (size_t)n, "inner", &inner_times, now);
    } else {
        n += line(text + n, sizeof text - (size_t)n, "worker", &worker_times, now);
    }
    if (write(1, text, (size_t)n) != n)
        abort();
}

/* The last call before the program ends. */
CALLED void mark(void)
{
    __asm__ volatile("");
}

CALLED void inner(int depth)
{
    if (depth == DEPTH)
        inner_times.entry = ticks();
    if (depth > 0) { /* three calls are open; the outermost call gives the total */
        inner(depth - 1);
        return;
    }
    inner_times.own = work(8);
    print_times(1);
    mark();
    if (strcmp(ending, "exit") == 0)
        exit(3);
    if (strcmp(ending, "_exit") == 0 || strcmp(ending, "child") == 0)
        _exit(3);
    kill(getpid(), SIGKILL);
    pause();
}

CALLED void middle(void)
{
    middle_times.entry = ticks();
    middle_times.own = work(6);
    inner_times.called = ticks();
    inner(DEPTH);
}

CALLED void outer(void)
{
    outer_times.entry = ticks();
    outer_times.own = work(4);
    middle_times.called = ticks();
    middle();
}

CALLED void *worker(void *unused)
{
    worker_times.entry = ticks();
    worker_times.own = work(4);
    sem_post(&works);
    for (;;)
        pause();
    return unused;
}

static inline __attribute__((always_inline)) void work_for_ever(void)
{
    outer_times.called = ticks();
    outer();
}

int main(int argc, char **argv)
{
    pthread_t thread;
    ending = argc > 1 ? argv[1] : "";
    if (strcmp(ending, "child") == 0) { /* the parent works for a long time after the child's end */
        if (fork() == 0)
            work_for_ever();
        wait(NULL);
        printf("gone %llu 0 0\n", (unsigned long long)monotonic_ns());
        work(100);
        return 0;
    }
    if (strcmp(ending, "thread") == 0) {
        sem_init(&works, 0, 0);
        worker_times.called = ticks();
        if (pthread_create(&thread, NULL, worker, NULL) != 0)
            return 1;
        sem_wait(&works);
        work(8);
        print_times(0);
        return 3;
    }
    work_for_ever();
    return 0;
}
