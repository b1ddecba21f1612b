/* SPDX-License-Identifier: MIT */
/* Threads that are created by a plain clone() with a TLS block that libc does not know, one after
 * another and beside a thread of libc, with totals known from the source. */
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

enum { CLONES = 50, CLONE_CALLS = 1000, HAMMER_CALLS = 250000 };

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

COUNTED void hammer(void)
{
    KEEP();
}

COUNTED void *hammer_loop(void *unused)
{
    for (int i = 0; i < HAMMER_CALLS; i++)
        hammer();
    return unused;
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
    pthread_t thread;
    char *memory = mmap(NULL, 2 * half, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || pthread_create(&thread, NULL, hammer_loop, NULL) != 0)
        abort();
    for (int i = 0; i < CLONES; i++)
        clone_one(memory, half);
    hammer_loop(NULL);
    pthread_join(thread, NULL);
    say_total("bare_thread", CLONES);
    say_total("bare_step", CLONES * CLONE_CALLS);
    say_total("hammer", 2ULL * HAMMER_CALLS);
    say_total("hammer_loop", 2);
    return 0;
}
