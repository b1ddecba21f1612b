/* SPDX-License-Identifier: MIT */
/*
 * Starts a thread whose thread block is not the C library's: by the system call itself, by clone(),
 * or by setting the thread pointer of the main thread for a while.  argv[1] selects the way.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifdef __x86_64__
#include <sys/syscall.h>
#endif

#define PAGE 4096u

static volatile unsigned done, sum;

/* Counted functions that the thread calls. */
__attribute__((noinline)) void add_one(unsigned by)
{
    sum += by;
}
__attribute__((noinline)) void add_many(void)
{
    for (unsigned i = 0; i < 1000; i++) {
        add_one(1);
    }
}

static int run_thread(void *unused)
{
    (void)unused;
    add_many();
    __atomic_store_n(&done, 1, __ATOMIC_RELEASE);
    for (;;) { /* no call of the C library works here */
    }
}

/* A page with unmapped memory below it. */
static char *map_block(void)
{
    char *pages = mmap(NULL, 16 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    mprotect(pages + PAGE, PAGE, PROT_READ | PROT_WRITE);
    return pages + PAGE;
}

#define FLAGS (CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM)

#ifdef __x86_64__
static void start_by_system_call(char *stack, char *block)
{
    long result;
    register char *tls __asm__("r8") = block;
    register long unused __asm__("r10") = 0;

    __asm__ volatile("syscall\n"
                     "test %%eax, %%eax\n"
                     "jnz 1f\n"
                     "xor %%edi, %%edi\n"
                     "call *%5\n"
                     "ud2\n"
                     "1:\n"
                     : "=a"(result)
                     : "0"(SYS_clone), "D"(FLAGS | CLONE_SETTLS), "S"(stack), "d"(0),
                       "r"(run_thread), "r"(tls), "r"(unused)
                     : "rcx", "r11", "memory");
}

static void set_own_pointer(char *block)
{
    unsigned long before;

    syscall(SYS_arch_prctl, 0x1003, &before); /* ARCH_GET_FS */
    __asm__ volatile("syscall" ::"a"(SYS_arch_prctl), "D"(0x1002), "S"(block)
                     : "rcx", "r11", "memory");
    add_many();
    __asm__ volatile("syscall" ::"a"(SYS_arch_prctl), "D"(0x1002), "S"(before)
                     : "rcx", "r11", "memory");
    done = 1;
}

static void set_pointer_by_number(char *block)
{
    unsigned long before;

    syscall(SYS_arch_prctl, 0x1003, &before);
    syscall(SYS_arch_prctl, 0x1002, block);
    add_many();
    syscall(SYS_arch_prctl, 0x1002, before);
    done = 1;
}
#endif

int main(int argc, char **argv)
{
    static char stack[16 * PAGE] __attribute__((aligned(64)));
    char *block = map_block();
    const char *way = argc > 1 ? argv[1] : "clone";

    add_many();
    if (strcmp(way, "clone") == 0) {
        clone(run_thread, stack + sizeof stack, FLAGS | CLONE_SETTLS, NULL, NULL, block, NULL);
    }
#ifdef __x86_64__
    if (strcmp(way, "system-call") == 0) {
        start_by_system_call(stack + sizeof stack - 64, block);
    }
    if (strcmp(way, "pointer") == 0) {
        set_own_pointer(block);
    }
    if (strcmp(way, "number") == 0) {
        set_pointer_by_number(block);
    }
#endif
    while (!__atomic_load_n(&done, __ATOMIC_ACQUIRE)) {
    }
    printf("%s: %u\n", way, sum);
    fflush(stdout);
    _exit(0);
}
