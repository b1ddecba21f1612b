/* SPDX-License-Identifier: MIT */
/*
 * Starts a thread whose thread block is not the C library's: by clone(), by the system call itself,
 * or by setting the thread pointer of the main thread for a while.  The memory before the block is
 * not mapped, or is another object that must stay as it is.  argv[1] selects the way.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef __i386__
#include <asm/ldt.h>
#endif

#define PAGE 4096u
#define FLAGS (CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM)

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
    return 0;
}

/* A page for the block; the page before it is not mapped, or filled with a pattern. */
static char *map_block(int is_mapped)
{
    char *pages = mmap(NULL, 16 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    mprotect(pages + PAGE, PAGE, PROT_READ | PROT_WRITE);
    if (is_mapped) {
        mprotect(pages, PAGE, PROT_READ | PROT_WRITE);
        memset(pages, 0x5a, PAGE);
        memset(pages + PAGE, 0x5a, PAGE);
    }
    return pages + PAGE;
}

static int is_untouched(const char *block)
{
    for (int i = -(int)PAGE; i < (int)PAGE; i++) {
        if (block[i] != 0x5a) {
            return 0;
        }
    }
    return 1;
}

#ifdef __i386__
static struct user_desc segment;

/* The thread pointer as clone() and the system calls expect it. */
static void *describe(char *block)
{
    uint32_t selector;

    __asm__("movl %%gs, %0" : "=r"(selector));
    segment = (struct user_desc){ .entry_number = selector >> 3,
                                  .base_addr = (uint32_t)(uintptr_t)block,
                                  .limit = 0xfffff,
                                  .seg_32bit = 1,
                                  .limit_in_pages = 1,
                                  .useable = 1 };
    return &segment;
}

static void start_by_system_call(char *stack, char *block)
{
    long result;
    void *tls = describe(block);

    ((void **)(void *)stack)[0] = (void *)run_thread;
    __asm__ volatile("int $0x80\n"
                     "test %%eax, %%eax\n"
                     "jnz 1f\n"
                     "pop %%eax\n"
                     "call *%%eax\n"
                     "ud2\n"
                     "1:\n"
                     : "=a"(result)
                     : "0"(SYS_clone), "b"(FLAGS | CLONE_SETTLS), "c"(stack), "d"(0), "S"(tls)
                     : "memory");
}

static void set_own_pointer(char *block)
{
    uint32_t before, selector;
    struct user_desc *own = describe(block);

    __asm__("movl %%gs, %0" : "=r"(before));
    own->entry_number = (unsigned)-1;
    __asm__ volatile("int $0x80" ::"a"(SYS_set_thread_area), "b"(own) : "memory");
    selector = own->entry_number << 3 | 3;
    __asm__ volatile("movl %0, %%gs" ::"r"(selector));
    add_many();
    __asm__ volatile("movl %0, %%gs" ::"r"(before));
    done = 1;
}
#endif

#ifdef __x86_64__
static void *describe(char *block)
{
    return block;
}

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
    const char *way = argc > 1 ? argv[1] : "clone";
    char *block = map_block(argc > 2);

    add_many();
    if (strcmp(way, "clone") == 0) {
        clone(run_thread, stack + sizeof stack, FLAGS | CLONE_SETTLS, NULL, NULL, describe(block),
              NULL);
    }
    if (strcmp(way, "system-call") == 0) {
        start_by_system_call(stack + sizeof stack - 64, block);
    }
    if (strcmp(way, "pointer") == 0) {
        set_own_pointer(block);
    }
#ifdef __x86_64__
    if (strcmp(way, "number") == 0) {
        set_pointer_by_number(block);
    }
#endif
    while (!__atomic_load_n(&done, __ATOMIC_ACQUIRE)) {
    }
    printf("%s: %u%s\n", way, sum, argc > 2 && !is_untouched(block) ? ", memory changed" : "");
    fflush(stdout);
    _exit(0);
}
