/* SPDX-License-Identifier: MIT */
/* Calls of known number in three phases: a tiny function so often that no budget allows to count it,
 * then the same one now and then, then often again; all in several threads.  Prints how often each was
 * called, and how long. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define CALLED __attribute__((noinline, noclone))
enum { THREADS = 2 };

static long rounds;

CALLED void tiny(void)
{
    __asm__ volatile("nop; nop; nop; nop; nop");
}

CALLED void batch(void)
{
    for (int i = 0; i < 1000; i++)
        tiny();
}

CALLED void work(void)
{
    for (volatile int i = 0; i < 20000; i++)
        continue;
}

/* Too dear to time each call, cheap enough to count them. */
CALLED void step(void)
{
    for (volatile int i = 0; i < 400; i++)
        continue;
}

CALLED void calm(void)
{
    work();
    tiny();
}

static void *phases(void *unused)
{
    (void)unused;
    for (long i = 0; i < rounds; i++)
        batch();
    for (long i = 0; i < rounds / 10; i++)
        calm();
    for (long i = 0; i < rounds / 10; i++)
        batch();
    for (long i = 0; i < rounds; i++)
        step();
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    struct timespec cpu;

    rounds = argc > 1 ? atol(argv[1]) : 1000;
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, phases, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
    printf("tiny %ld\nbatch %ld\ncalm %ld\nwork %ld\nstep %ld\n",
           THREADS * (1000 * (rounds + rounds / 10) + rounds / 10),
           THREADS * (rounds + rounds / 10), THREADS * (rounds / 10), THREADS * (rounds / 10),
           THREADS * rounds);
    fprintf(stderr, "%.3f s\n", (double)cpu.tv_sec + (double)cpu.tv_nsec / 1e9);
    return 0;
}
