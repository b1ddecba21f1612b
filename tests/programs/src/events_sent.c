/* SPDX-License-Identifier: MIT */
/* Calls of known numbers, for `hotfn run --send`: ROUNDS rounds on each of two threads, each with
 * one call of `outer` that calls `inner` three times, then sleeps PAUSE_US microseconds; at the
 * end one call of `slow_one` that takes 20 ms.  Or `execute`: one round, then the program executes
 * itself. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static volatile int sink;
static int rounds, pause_us;

__attribute__((noinline)) static void inner(int x)
{
    sink = x;
    sink++;
}

__attribute__((noinline)) static void outer(int x)
{
    sink = x;
    inner(x);
    inner(x + 1);
    inner(x + 2);
    sink++;
}

__attribute__((noinline)) static void slow_one(void)
{
    sink = 0;
    usleep(20000);
    sink++;
}

static void *work_in_rounds(void *x)
{
    for (int i = 0; i < rounds; i++) {
        outer(i);
        if (pause_us) {
            usleep((useconds_t)pause_us);
        }
    }
    return x;
}

int main(int argc, char **argv)
{
    pthread_t other;

    if (argc > 1 && strcmp(argv[1], "execute") == 0) {
        outer(0);
        usleep(20000);
        execl(argv[0], argv[0], "1", "0", (char *)NULL);
        return 1;
    }
    rounds = argc > 1 ? atoi(argv[1]) : 1;
    pause_us = argc > 2 ? atoi(argv[2]) : 0;
    if (pthread_create(&other, NULL, work_in_rounds, NULL) != 0) {
        return 1;
    }
    work_in_rounds(NULL);
    pthread_join(other, NULL);
    slow_one();
    puts("done");
    return 7;
}
