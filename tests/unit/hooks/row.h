/* SPDX-License-Identifier: MIT */
/* A replacement for the rows of counters/ that a test can inspect.  The slow path gives `slots` to
 * each thread without a row; its contract is that of slow_path in hotfn/lowlevel/counters.h. */
#ifndef HFN_TESTS_HOOKS_ROW_H
#define HFN_TESTS_HOOKS_ROW_H

#include <hotfn/lowlevel/hooks.h>

static _Thread_local uint64_t *row __attribute__((tls_model("initial-exec")));
static uint64_t slots[512];
static uint64_t slow_calls;

/* The row that slow_path stores for the calling thread. */
__attribute__((used)) static uint64_t *choose_row(void)
{
    slow_calls++;
    return slots;
}

/* Called by a stub.  Stores the thread's row and keeps all registers. */
__attribute__((naked)) static void slow_path(void)
{
#if defined(__x86_64__)
    __asm__("leaq -128(%rsp), %rsp\n\t"
            "pushfq; pushq %rax; pushq %rcx; pushq %rdx; pushq %rsi; pushq %rdi\n\t"
            "pushq %r8; pushq %r9; pushq %r10; pushq %r11; pushq %rbp\n\t"
            "movq %rsp, %rbp\n\t"
            "andq $-16, %rsp\n\t"
            "call choose_row\n\t"
            "movq row@gottpoff(%rip), %rcx\n\t"
            "movq %rax, %fs:(%rcx)\n\t"
            "movq %rbp, %rsp\n\t"
            "popq %rbp; popq %r11; popq %r10; popq %r9; popq %r8\n\t"
            "popq %rdi; popq %rsi; popq %rdx; popq %rcx; popq %rax; popfq\n\t"
            "leaq 128(%rsp), %rsp\n\t"
            "ret");
#else
    __asm__("pushfl; pushl %eax; pushl %ecx; pushl %edx; pushl %ebp\n\t"
            "movl %esp, %ebp\n\t"
            "andl $-16, %esp\n\t"
            "call choose_row\n\t"
            "movl %eax, %gs:row@ntpoff\n\t"
            "movl %ebp, %esp\n\t"
            "popl %ebp; popl %edx; popl %ecx; popl %eax; popfl\n\t"
            "ret");
#endif
}

static inline hotfn_row_access row_access(void)
{
    hotfn_row_access access = HOTFN_ROW_ACCESS_INIT;
    uintptr_t thread;

#if defined(__x86_64__)
    __asm__("movq %%fs:0, %0" : "=r"(thread));
#else
    __asm__("movl %%gs:0, %0" : "=r"(thread));
#endif
    access.displacement = (int32_t)((uintptr_t)&row - thread);
    access.slow_path = slow_path;
    return access;
}

#endif
