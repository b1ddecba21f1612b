/* SPDX-License-Identifier: MIT */
/* Threads of every kind, with totals known from the source: many at once in one function,
 * thousands of short ones, and threads that end by pthread_exit, are cancelled, have a TLS
 * destructor, or are created by a plain clone() with a TLS block that libc does not know. */
#if defined(__i386__)
#include <asm/ldt.h>
#endif
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "totals.h"

enum { WORKERS = 4, SHARED_CALLS = 250000, SHORT_THREADS = 3000, AT_ONCE = 8, EXITS = 200,
       CANCELS = 100, CALLS_BEFORE_CANCEL = 57, CLONES = 50, CLONE_CALLS = 1000 };

static pthread_key_t key;

COUNTED void hammer(void)
{
    KEEP();
}

COUNTED void *hammer_loop(void *unused)
{
    for (int i = 0; i < SHARED_CALLS; i++)
        hammer();
    return unused;
}

COUNTED void *short_life(void *unused)
{
    KEEP();
    return unused;
}

COUNTED void leave(int depth)
{
    if (depth == 0)
        pthread_exit(NULL);
    leave(depth - 1);
    KEEP();
}

COUNTED void *leaver(void *unused)
{
    leave(9);
    return unused;
}

COUNTED void on_key_end(void *unused)
{
    (void)unused;
    KEEP();
}

COUNTED void on_cancel(void *unused)
{
    (void)unused;
    KEEP();
}

COUNTED void step_before_cancel(void)
{
    KEEP();
}

COUNTED void *wait_to_be_cancelled(void *barrier)
{
    pthread_setspecific(key, &key);
    pthread_cleanup_push(on_cancel, NULL);
    for (int i = 0; i < CALLS_BEFORE_CANCEL; i++)
        step_before_cancel();
    pthread_barrier_wait(barrier);
    for (;;)
        pause();
    pthread_cleanup_pop(0);
    return NULL;
}

COUNTED void bare_step(void)
{
    KEEP();
}

/* Runs on a TLS block of zeros and therefore calls no function of libc. */
COUNTED int bare_thread(void *unused)
{
    (void)unused;
    for (int i = 0; i < CLONE_CALLS; i++)
        bare_step();
    return 0;
}

static void run_all(void *(*start)(void *), int count)
{
    pthread_t threads[AT_ONCE];
    for (int done = 0; done < count; done += AT_ONCE) {
        int now = count - done < AT_ONCE ? count - done : AT_ONCE;
        for (int i = 0; i < now; i++)
            if (pthread_create(&threads[i], NULL, start, NULL) != 0)
                abort();
        for (int i = 0; i < now; i++)
            pthread_join(threads[i], NULL);
    }
}

static void cancel_one(void)
{
    pthread_t thread;
    pthread_barrier_t barrier;
    pthread_barrier_init(&barrier, NULL, 2);
    if (pthread_create(&thread, NULL, wait_to_be_cancelled, &barrier) != 0)
        abort();
    pthread_barrier_wait(&barrier);
    pthread_cancel(thread);
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&barrier);
}

/* The thread pointer in the form that clone() expects. */
static void *thread_pointer_for_clone(char *thread_pointer)
{
#if defined(__i386__)
    static struct user_desc segment;
    /* libc makes system calls through kernel_entry, also in a thread of clone(). */
    uint32_t selector, kernel_entry;
    __asm__("movl %%gs, %0; movl %%gs:16, %1" : "=r"(selector), "=r"(kernel_entry));
    memcpy(thread_pointer + 16, &kernel_entry, sizeof kernel_entry);
    segment = (struct user_desc){ .entry_number = selector >> 3,
                                  .base_addr = (uint32_t)(uintptr_t)thread_pointer,
                                  .limit = 0xfffff,
                                  .seg_32bit = 1,
                                  .limit_in_pages = 1,
                                  .useable = 1 };
    return &segment;
#else
    return thread_pointer;
#endif
}

static void clone_one(char *stack_and_tls, size_t half)
{
    static _Atomic uint32_t tid;
    char *thread_pointer = stack_and_tls + 2 * half - 4096;
    memset(stack_and_tls + half, 0, half);
    memcpy(thread_pointer, &thread_pointer, sizeof(char *)); /* fs:0 points to itself */
    int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM |
                CLONE_SETTLS | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID;
    if (clone(bare_thread, stack_and_tls + half, flags, NULL, &tid,
              thread_pointer_for_clone(thread_pointer), &tid) < 0)
        abort();
    for (uint32_t now; (now = atomic_load(&tid)) != 0;)
        syscall(SYS_futex, &tid, FUTEX_WAIT, now, NULL, NULL, 0);
}

int main(void)
{
    size_t half = 256 * 1024;
    char *memory = mmap(NULL, 2 * half, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || pthread_key_create(&key, on_key_end) != 0)
        abort();
    run_all(hammer_loop, WORKERS);
    run_all(short_life, SHORT_THREADS);
    run_all(leaver, EXITS);
    for (int i = 0; i < CANCELS; i++)
        cancel_one();
    for (int i = 0; i < CLONES; i++)
        clone_one(memory, half);
    say_total("hammer", (unsigned long long)WORKERS * SHARED_CALLS);
    say_total("hammer_loop", WORKERS);
    say_total("short_life", SHORT_THREADS);
    say_total("leave", 10 * EXITS);
    say_total("leaver", EXITS);
    say_total("on_key_end", CANCELS);
    say_total("on_cancel", CANCELS);
    say_total("step_before_cancel", CANCELS * CALLS_BEFORE_CANCEL);
    say_total("wait_to_be_cancelled", CANCELS);
    say_total("bare_thread", CLONES);
    say_total("bare_step", CLONES * CLONE_CALLS);
    return 0;
}
