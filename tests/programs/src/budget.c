/* SPDX-License-Identifier: MIT */
/* Functions whose calls the program counts itself. In the first phase a tiny function is called
 * so often that no budget covers counting it; in the second it is called seldom; in the third a
 * longer function is called. Several threads run all phases. The first and the last phase run
 * for at least the given number of rounds and until a line (or end of file) has been read from
 * the input. With a second argument the first phase also does work, so that counting costs only
 * a small part of it. The program prints the number of calls of each function. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define CALLED __attribute__((noinline, noclone))
enum { THREADS = 2 };

static long rounds;
static int works;
static atomic_int lines;                    /* lines read; a large number at end of file */
static atomic_long bursts, calms, steps;    /* calls of batch, calm and step */

CALLED void tiny(void)
{
    __asm__ volatile("nop; nop; nop; nop; nop");
}

CALLED void work(void)
{
    for (volatile int i = 0; i < 20000; i++)
        continue;
}

CALLED void batch(void)
{
    for (int i = 0; i < 1000; i++)
        tiny();
    if (works)
        work();
}

/* Timing each call costs more than the budget allows; counting each call does not. */
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
    long i;

    (void)unused;
    for (i = 0; i < rounds || lines < 1; i++)
        batch();
    bursts += i;
    for (i = 0; i < rounds / 10; i++)
        calm();
    calms += i;
    for (i = 0; i < rounds || lines < 2; i++)
        step();
    steps += i;
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    int byte;

    rounds = argc > 1 ? atol(argv[1]) : 1000;
    works = argc > 2;
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, phases, NULL);
    while ((byte = getchar()) != EOF)
        lines += byte == '\n';
    lines = 2;
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    printf("tiny %ld\nbatch %ld\ncalm %ld\nwork %ld\nstep %ld\n", 1000 * bursts + calms, bursts, calms,
           works ? bursts + calms : calms, steps);
    return 0;
}
