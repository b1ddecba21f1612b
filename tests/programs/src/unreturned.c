/* SPDX-License-Identifier: MIT */
/* Functions that never return: each works until a tick of the processor's own clock, then innermost the program
 * ends as the argument says.  Before that it tells, by name: calls, and the ticks since the entry and of its own work; and
 * CLOCK_MONOTONIC at that moment. */
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

static struct {
    uint64_t entry, own;
} outer_times, middle_times, inner_times, worker_times;
static const char *way;
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

/* Some milliseconds of a processor of 1 to 5 GHz; of an emulated counter's 62.5 MHz much more. */
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

CALLED void tell(int all)
{
    char text[512];
    uint64_t now = ticks();
    int n = 0;
    if (all)
        n = snprintf(text, sizeof text, "outer %llu %llu\nmiddle %llu %llu\ninner %llu %llu\n",
                     (unsigned long long)(now - outer_times.entry), (unsigned long long)outer_times.own,
                     (unsigned long long)(now - middle_times.entry), (unsigned long long)middle_times.own,
                     (unsigned long long)(now - inner_times.entry), (unsigned long long)inner_times.own);
    else
        n = snprintf(text, sizeof text, "worker %llu %llu\n", (unsigned long long)(now - worker_times.entry),
                     (unsigned long long)worker_times.own);
    n += snprintf(text + n, sizeof text - (size_t)n, "at %llu 0\n", (unsigned long long)monotonic_ns());
    if (write(1, text, (size_t)n) != n)
        abort();
}

/* The last that is seen of a child. */
CALLED void mark(void)
{
    __asm__ volatile("");
}

CALLED void inner(int depth)
{
    if (depth > 0) { /* three calls are open, the total is that of the outermost */
        inner(depth - 1);
        return;
    }
    inner_times.own = work(8);
    tell(1);
    mark();
    if (strcmp(way, "exit") == 0)
        exit(3);
    if (strcmp(way, "_exit") == 0 || strcmp(way, "child") == 0)
        _exit(3);
    kill(getpid(), SIGKILL);
    pause();
}

CALLED void middle(void)
{
    middle_times.entry = ticks();
    middle_times.own = work(6);
    inner_times.entry = ticks();
    inner(2);
}

CALLED void outer(void)
{
    outer_times.entry = ticks();
    outer_times.own = work(4);
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

int main(int argc, char **argv)
{
    pthread_t thread;
    way = argc > 1 ? argv[1] : "";
    if (strcmp(way, "child") == 0) { /* its parent works on, long after its end */
        if (fork() == 0)
            outer();
        wait(NULL);
        printf("gone %llu 0\n", (unsigned long long)monotonic_ns());
        work(100);
        return 0;
    }
    if (strcmp(way, "thread") == 0) {
        sem_init(&works, 0, 0);
        if (pthread_create(&thread, NULL, worker, NULL) != 0)
            return 1;
        sem_wait(&works);
        work(8);
        tell(0);
        return 3;
    }
    outer();
    return 0;
}
