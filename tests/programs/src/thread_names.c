/* SPDX-License-Identifier: MIT */
/*
 * Threads that rename themselves after their first hooked call, a computing thread and a waiting
 * thread; then, with arguments, another program in place of this one.  "filter": waits before and
 * after a filter is installed that kills for the reading of processor times; "hidden": that lets it
 * fail, without the agent's prctl; "harmless": that allows it.
 */
#define _GNU_SOURCE
#include "../../forbid_call.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { WAIT_MS = 800, MAX_THREADS = 4000, STACK_BYTES = 1 << 17 };

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

__attribute__((noinline)) static int wait_behind_filter(const char *how)
{
    bool is_hidden = strcmp(how, "hidden") == 0, kills = strcmp(how, "filter") == 0;
    void *libc = dlopen("libc.so.6", RTLD_LAZY);
    void *own = dlsym(libc, "prctl");
    int (*hidden)(int, ...);

    memcpy(&hidden, &own, sizeof hidden);
    wait_ms(WAIT_MS / 4);
    if (!forbid_call_by(is_hidden || kills ? SYS_clock_gettime : SYS_personality,
                        kills ? SECCOMP_RET_KILL : SECCOMP_RET_ERRNO | EPERM,
                        is_hidden ? hidden : prctl)) {
        return 5;
    }
    for (int i = 0; i < 4; i++) {
        wait_ms(WAIT_MS / 16);
    }
    return 0;
}

static pthread_barrier_t all;

__attribute__((noinline)) static void *run_one(void *unused)
{
    pthread_barrier_wait(&all);
    return unused;
}

/* Many threads at one time. */
__attribute__((noinline)) static void run_many(uint32_t count)
{
    static pthread_t threads[MAX_THREADS];
    pthread_attr_t attributes;

    pthread_barrier_init(&all, NULL, count);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    for (uint32_t i = 0; i < count; i++) {
        if (pthread_create(&threads[i], &attributes, run_one, NULL) != 0) {
            _exit(4);
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        pthread_join(threads[i], NULL);
    }
}

int main(int argc, char **argv)
{
    pthread_t busy, idle;

    if (argc > 2 && strcmp(argv[1], "many") == 0) {
        run_many((uint32_t)atoi(argv[2]));
        return 0;
    }

    if (argc > 1 && (strcmp(argv[1], "filter") == 0 || strcmp(argv[1], "hidden") == 0 ||
                     strcmp(argv[1], "harmless") == 0)) {
        return wait_behind_filter(argv[1]);
    }
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
