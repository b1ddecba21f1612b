/* SPDX-License-Identifier: MIT */
/*
 * One thread counts alone for a while, with direct calls; then company comes in the middle of it, by the way
 * that the argument names.  Totals are known from the source.
 * With "maps" it only shows how often the live record is mapped.
 */
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "totals.h"

enum { ALONE = 100000, TOGETHER = 400000, CHILD = 1000, TICKS = 50, STACK = 256 * 1024 };

static atomic_int others, waits; /* threads that are at work; threads that wait for us */
static volatile sig_atomic_t ticks;

COUNTED void leaf(void)
{
    KEEP();
}

COUNTED void branch(void)
{
    leaf();
    leaf();
    KEEP();
}

COUNTED void trunk(int rounds)
{
    for (int i = 0; i < rounds; i++)
        branch();
}

/* ---- Company. */

COUNTED int work(void *unused)
{
    (void)unused;
    atomic_fetch_add(&others, 1);
    while (!atomic_load(&waits))
        ;
    trunk(TOGETHER);
    return 0;
}

static void *start(void *unused)
{
    work(unused);
    return NULL;
}

static unsigned long long alone_rounds;

/* They begin while we are at work, and then all are. */
COUNTED void wait_at_work(int count)
{
    while (atomic_load(&others) < count) {
        trunk(1);
        alone_rounds++;
    }
    atomic_store(&waits, 1);
    trunk(TOGETHER);
}

static void with_threads(int count)
{
    pthread_t threads[4];

    for (int i = 0; i < count; i++)
        if (pthread_create(&threads[i], NULL, start, NULL) != 0)
            abort();
    wait_at_work(count);
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
}

/* A thread that nobody announces, with a TLS block of zeros. */
static void with_clone(void)
{
    static _Atomic uint32_t tid;
    char *stack = mmap(NULL, 2 * STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *thread_pointer = stack + 2 * STACK - 4096;
    int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM |
                CLONE_SETTLS | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID;

    memcpy(thread_pointer, &thread_pointer, sizeof(char *)); /* fs:0 points to itself */
    if (clone(work, stack + STACK, flags, NULL, &tid, thread_pointer, &tid) < 0)
        abort();
    wait_at_work(1);
    for (uint32_t now; (now = atomic_load(&tid)) != 0;)
        syscall(SYS_futex, &tid, FUTEX_WAIT, now, NULL, NULL, 0);
}

static void with_child(pid_t (*make)(void))
{
    pid_t child = make();

    if (child == 0) {
        trunk(CHILD);
        _exit(0);
    }
    trunk(TOGETHER);
    if (child < 0 || waitpid(child, NULL, 0) != child)
        abort();
}

COUNTED void on_tick(int number)
{
    (void)number;
    trunk(1);
    ticks++;
}

static void with_signals(void)
{
    struct itimerval often = { { 0, 500 }, { 0, 500 } }, never = { { 0, 0 }, { 0, 0 } };

    signal(SIGALRM, on_tick);
    setitimer(ITIMER_REAL, &often, NULL);
    while (ticks < TICKS) {
        trunk(1);
        alone_rounds++;
    }
    setitimer(ITIMER_REAL, &never, NULL);
    signal(SIGALRM, SIG_IGN);
    alone_rounds += (unsigned long long)ticks;
}

static void show_maps(void)
{
    char line[512];
    FILE *maps = fopen("/proc/self/maps", "r");

    while (maps && fgets(line, sizeof line, maps))
        if (strstr(line, "hotfn-record"))
            puts("mapped");
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "alone";
    unsigned long long rounds = ALONE;

    trunk(ALONE);
    if (strcmp(how, "maps") == 0)
        show_maps();
    if (strcmp(how, "thread") == 0 || strcmp(how, "threads") == 0) {
        int count = strcmp(how, "threads") == 0 ? 4 : 1;
        with_threads(count);
        rounds += (1ULL + (unsigned)count) * TOGETHER;
    } else if (strcmp(how, "clone") == 0) {
        with_clone();
        rounds += 2 * TOGETHER;
    } else if (strcmp(how, "fork") == 0) {
        with_child(fork);
        rounds += TOGETHER + CHILD; /* in rows of their own */
    } else if (strcmp(how, "signals") == 0) {
        with_signals();
    }
    rounds += alone_rounds;
    say_total("branch", rounds);
    say_total("leaf", 2 * rounds);
    return 0;
}
