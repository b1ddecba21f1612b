/* SPDX-License-Identifier: MIT */
/*
 * Threads that rename themselves after their first hooked call, a computing thread and a waiting
 * thread; then, with arguments, another program in place of this one.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { WAIT_MS = 800 };

__attribute__((noinline)) static void wait_ms(long ms)
{
    struct timespec left = { ms / 1000, ms % 1000 * 1000000 };

    while (nanosleep(&left, &left) != 0) {
    }
}

/* 300 ms of the thread's processor time. */
__attribute__((noinline)) static void compute(void)
{
    struct timespec t;

    do {
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    } while (t.tv_sec == 0 && t.tv_nsec < 300000000);
}

__attribute__((noinline)) static void *run_busy(void *unused)
{
    (void)unused;
    wait_ms(1);
    pthread_setname_np(pthread_self(), "computes");
    compute();
    wait_ms(WAIT_MS);
    return NULL;
}

__attribute__((noinline)) static void *run_idle(void *unused)
{
    (void)unused;
    wait_ms(1);
    pthread_setname_np(pthread_self(), "waits");
    wait_ms(WAIT_MS);
    return NULL;
}

/* The call of wait_ms has returned when the program becomes another one. */
__attribute__((noinline)) static void become(char **argv)
{
    struct timespec left = { 0, WAIT_MS * 1000000 };

    wait_ms(1);
    nanosleep(&left, NULL);
    execv(argv[0], argv);
    _exit(3);
}

int main(int argc, char **argv)
{
    pthread_t busy, idle;

    if (argc > 1 && strcmp(argv[1], "threads") != 0) {
        become(argv + 1);
    }
    pthread_create(&busy, NULL, run_busy, NULL);
    pthread_create(&idle, NULL, run_idle, NULL);
    pthread_join(busy, NULL);
    pthread_join(idle, NULL);
    pthread_setname_np(pthread_self(), "main-thread");
    return 0;
}
