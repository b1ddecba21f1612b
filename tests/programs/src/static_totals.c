/* SPDX-License-Identifier: MIT */
/* Known totals of a program that is linked statically or with musl: for each byte of its input it
 * starts threads, of which some start one themselves, forks children, and spawns a program. */
#include <errno.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_THREADS = 256, CHILD_CALLS = 1000 };

extern char **environ;
static long calls;

__attribute__((noinline)) long work(long x)
{
    __asm__ volatile("");
    return x + 1;
}

__attribute__((noinline)) long fork_work(long x)
{
    __asm__ volatile("");
    return x + 1;
}

static void *call(void *unused)
{
    for (long i = 0; i < calls; i++) {
        work(i);
    }
    return unused;
}

static void *call_and_start(void *unused)
{
    pthread_t thread;

    call(NULL);
    if (pthread_create(&thread, NULL, call, NULL)) {
        abort();
    }
    pthread_join(thread, NULL);
    return unused;
}

static void wait_for(pid_t pid)
{
    int status = 0;

    if (waitpid(pid, &status, 0) != pid || status) {
        fprintf(stderr, "a child ended with %#x\n", status);
        abort();
    }
}

static void fork_once(void)
{
    pid_t pid = fork();

    for (long i = 0; i < CHILD_CALLS; i++) {
        fork_work(i);
    }
    if (pid == 0) {
        _exit(0);
    }
    wait_for(pid);
}

static void spawn_once(void)
{
    char *words[] = { "true", NULL };
    pid_t pid;

    if (posix_spawn(&pid, "/bin/true", NULL, NULL, words, environ)) {
        abort();
    }
    wait_for(pid);
}

int main(int count, char **words)
{
    int threads = count > 3 ? atoi(words[1]) : 0, forks = count > 3 ? atoi(words[2]) : 0;
    pthread_t all[MAX_THREADS];
    char byte;

    calls = count > 3 ? atol(words[3]) : 0;
    puts("ready");
    fflush(stdout);
    while (read(0, &byte, 1) == 1) {
        for (int i = 0; i < threads; i++) {
            if (pthread_create(&all[i], NULL, i % 8 == 0 ? call_and_start : call, NULL)) {
                abort();
            }
        }
        for (int i = 0; i < forks; i++) {
            fork_once();
            spawn_once();
        }
        for (int i = 0; i < threads; i++) {
            pthread_join(all[i], NULL);
        }
        puts("done");
        fflush(stdout);
    }
    return 0;
}
