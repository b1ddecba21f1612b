/* SPDX-License-Identifier: MIT */
/* Runs for the given number of seconds and exercises everything that timing records: deep
 * recursion along ever new call paths, threads that start and end, calls left by longjmp, slow
 * calls, memory. The second argument is a pause after each round, in milliseconds. In each round
 * every thread makes a call before any thread proceeds, and the next round begins only when the
 * kernel has removed all threads (which may be after a join returns). Five rows therefore
 * suffice for each round, whatever else runs on the machine. */
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifdef __clang__
#define OWN __attribute__((noinline))
#else
#define OWN __attribute__((noinline, noclone))
#endif

volatile long sink;

OWN void walk(unsigned long way, int depth);
#define STEP(n)                                                                                    \
    OWN void step##n(unsigned long way, int depth)                                                 \
    {                                                                                              \
        sink += n;                                                                                 \
        walk(way / 8, depth - 1);                                                                  \
        sink -= n;                                                                                 \
    }
STEP(0)
STEP(1) STEP(2) STEP(3) STEP(4) STEP(5) STEP(6) STEP(7)

    OWN void walk(unsigned long way, int depth)
{
    static void (*const steps[8])(unsigned long, int) = { step0, step1, step2, step3,
                                                          step4, step5, step6, step7 };
    sink++;
    if (depth > 0)
        steps[way % 8](way, depth);
    sink++;
}

static __thread jmp_buf back;
OWN void deep(int n)
{
    sink++;
    if (n == 0)
        longjmp(back, 1);
    deep(n - 1);
    sink++;
}
OWN void leaves(void)
{
    sink++;
    if (!setjmp(back))
        deep(30);
    sink++;
}

OWN void *keep(unsigned long bytes)
{
    void *block = malloc(bytes);
    sink++;
    return block;
}

OWN void one_round(unsigned seed)
{
    unsigned long state = seed * 2654435761ul + 12345;
    for (int i = 0; i < 400; i++) {
        state = state * 6364136223846793005ul + 1442695040888963407ul;
        walk(state >> 8, 18);
        free(keep(state % 500));
        if (i % 16 == 0)
            leaves();
    }
    sink++;
}

static pthread_barrier_t all_there;
static struct work {
    unsigned seed;
    long tid;
} works[4];

OWN void arrive(void)
{
    pthread_barrier_wait(&all_there);
}

static void *thread(void *work)
{
    struct work *w = work;
    w->tid = syscall(SYS_gettid);
    arrive();
    one_round(w->seed);
    return NULL;
}

static void wait_until_gone(long tid)
{
    while (syscall(SYS_tgkill, (long)getpid(), tid, 0L) == 0)
        usleep(100);
}

int main(int argc, char **argv)
{
    long seconds = argc > 1 ? atol(argv[1]) : 1;
    long pause_ms = argc > 2 ? atol(argv[2]) : 0;
    time_t end = time(NULL) + seconds;
    unsigned seed = 0;
    pthread_barrier_init(&all_there, NULL, 5);
    while (time(NULL) < end) {
        pthread_t threads[4];
        for (int i = 0; i < 4; i++) {
            works[i].seed = seed++;
            pthread_create(&threads[i], NULL, thread, &works[i]);
        }
        arrive();
        one_round(seed);
        for (int i = 0; i < 4; i++) {
            pthread_join(threads[i], NULL);
            wait_until_gone(works[i].tid);
        }
        if (pause_ms > 0)
            usleep((useconds_t)(1000 * pause_ms));
    }
    printf("%ld\n", sink >= 0 ? 1L : 0L);
    return 0;
}
