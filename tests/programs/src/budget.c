/* SPDX-License-Identifier: MIT */
/* Calls of known number: a tiny function so often that no budget allows to count it, then the same one now and
 * then, then a longer one; all in several threads.  The first and the last phase go on until a line (or the end)
 * was read from the input, and for so many rounds at least.  With a second word the first does work as well, of which
 * counting is a small part.  Prints how often each was called. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define CALLED __attribute__((noinline, noclone))
enum { THREADS = 2 };

static long rounds;
static int works;
static atomic_int lines;                    /* read; many at the end of the input */
static atomic_long bursts, calms, steps;    /* calls of batch, calm and step      */

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
