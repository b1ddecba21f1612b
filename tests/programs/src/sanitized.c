/* SPDX-License-Identifier: MIT */
/* For kinds_test.py: built with each sanitizer. Without an argument it prints its counts; an
 * argument selects an error that the sanitizer must report. */
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 3, TURNS = 1000 };
int shared;
void *volatile kept;

__attribute__((noinline)) int counted(int x)
{
    return x * 3 + 1;
}

__attribute__((noinline)) int sum(const int *of, int count)
{
    int all = 0;
    for (int i = 0; i < count; i++)
        all += counted(of[i]);
    return all;
}

__attribute__((noinline)) void *worker(void *place)
{
    int *of = malloc(TURNS * sizeof *of);
    for (int i = 0; i < TURNS; i++)
        of[i] = i % 7;
    *(int *)place = sum(of, TURNS);
    free(of);
    return NULL;
}

__attribute__((noinline)) void *racer(void *unused)
{
    for (int i = 0; i < TURNS; i++)
        shared += counted(i) > 0;
    return unused;
}

/* Runs in a thread that ends, so that no pointer to the block is left on a stack. */
__attribute__((noinline)) void *leaker(void *unused)
{
    kept = malloc(123);
    kept = NULL;
    return unused;
}

__attribute__((noinline)) void mistake(const char *which)
{
    if (strcmp(which, "overflow") == 0) {
        volatile char *four = malloc(4);
        four[counted(1)] = 1;
    } else if (strcmp(which, "integer") == 0) {
        volatile int most = 0x7fffffff;
        most += counted(0);
    } else if (strcmp(which, "leak") == 0) {
        pthread_t one;
        pthread_create(&one, NULL, leaker, NULL);
        pthread_join(one, NULL);
    } else if (strcmp(which, "race") == 0) {
        pthread_t two[2];
        for (int i = 0; i < 2; i++)
            pthread_create(&two[i], NULL, racer, NULL);
        for (int i = 0; i < 2; i++)
            pthread_join(two[i], NULL);
    }
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    int sums[THREADS];
    jmp_buf back;
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, worker, &sums[i]);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    if (setjmp(back) == 0)
        longjmp(back, counted(0));
    for (int i = 0; i < THREADS; i++)
        printf("%d\n", sums[i]);
    fflush(stdout);
    if (argc > 1)
        mistake(argv[1]);
    return 0;
}
