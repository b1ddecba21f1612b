/* SPDX-License-Identifier: MIT */
/* A function whose unwind data describe a frame much larger than the real one, called near the
 * upper end of some stacks. x86. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#define OWN __attribute__((noinline))
enum { CALLS = 3000, STACK = 1 << 16 };

static volatile unsigned sink;

OWN void work(void)
{
    for (unsigned i = 0; i < 100; i++)
        sink += i;
}

/* Only counted, because it reads its return address. */
void claims(void);
#ifdef __x86_64__
#define STACK_POINTER "%rsp"
#define OTHER "%rax"
#else
#define STACK_POINTER "%esp"
#define OTHER "%eax"
#endif
__asm__(".text\n"
        ".globl claims\n"
        ".type claims, @function\n"
        "claims: .cfi_startproc\n"
        "    mov (" STACK_POINTER "), " OTHER "\n"
        "    sub $24, " STACK_POINTER "\n"
        "    .cfi_remember_state\n"
        "    .cfi_def_cfa_offset 60000\n"
        "    call work\n"
        "    add $24, " STACK_POINTER "\n"
        "    .cfi_restore_state\n"
        "    ret\n"
        "    .cfi_endproc\n"
        ".size claims, . - claims\n");

OWN void claim_often(void)
{
    for (int i = 0; i < CALLS; i++) {
        claims();
        __asm__ volatile("");
    }
}

/* The first calls are far from the upper end of the stack, where the described frame fits. */
OWN void far_down(void)
{
    char room[1 << 17];

    memset(room, 1, sizeof room);
    claim_often();
    __asm__ volatile("" ::"r"(room) : "memory");
}

static void *in_a_thread(void *unused)
{
    claim_often();
    return unused;
}

static ucontext_t back, other;

static void on_another_stack(void)
{
    claim_often();
}

/* The memory above it cannot be read. */
static char *small_stack(void)
{
    char *begin = mmap(NULL, 2 * STACK, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    mprotect(begin, STACK, PROT_READ | PROT_WRITE);
    return begin;
}

int main(void)
{
    pthread_attr_t attributes;
    pthread_t thread;

    far_down();
    claim_often();
    pthread_attr_init(&attributes);
    pthread_attr_setstack(&attributes, small_stack(), STACK);
    pthread_create(&thread, &attributes, in_a_thread, NULL);
    pthread_join(thread, NULL);
    getcontext(&other);
    other.uc_stack.ss_sp = small_stack();
    other.uc_stack.ss_size = STACK;
    other.uc_link = &back;
    makecontext(&other, on_another_stack, 0);
    swapcontext(&back, &other);
    claim_often();
    printf("%u\n", sink);
    return 0;
}
