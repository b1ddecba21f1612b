/* SPDX-License-Identifier: MIT */
/* A hook's stub in assembly: fake_call(slot) counts a call in the thread's row, or enters the slow
 * path if the thread has none, and preserves every register. */
#ifndef HFN_TESTS_COUNTERS_STUB_H
#define HFN_TESTS_COUNTERS_STUB_H

#include "check.h"
#include "counters/rows.h"
#include "counters/thread_row.h"

#include <hotfn/lowlevel/counters.h>

void (*stub_slow_path)(void);
int32_t stub_displacement;
void fake_call(uint64_t slot);

#if defined(__x86_64__)
__asm__(".text\n"
        ".type fake_call, @function\n"
        ".globl fake_call\n"
        "fake_call:\n"
        "    .cfi_startproc\n"
        "    jmp 2f\n"
        "1:  movq -16(%rsp), %rcx\n"
        "    call *stub_slow_path(%rip)\n"
        "2:  movq %rcx, -16(%rsp)\n"
        "    movslq stub_displacement(%rip), %rcx\n"
        "    movq %fs:(%rcx), %rcx\n"
        "    jrcxz 1b\n"
        "    incq (%rcx,%rdi,8)\n"
        "    movq -16(%rsp), %rcx\n"
        "    ret\n"
        "    .cfi_endproc\n"
        ".size fake_call, . - fake_call\n");
#else
/* The slot is on the stack, above the return address.  A call of the next instruction gives the
 * address of the code, from which the data are addressed. */
__asm__(".text\n"
        ".type fake_call, @function\n"
        ".globl fake_call\n"
        "fake_call:\n"
        "    .cfi_startproc\n"
        "    jmp 2f\n"
        "1:  .cfi_def_cfa_offset 8\n"
        "    popl %ecx\n"
        "    .cfi_def_cfa_offset 4\n"
        "    pushl %eax\n"
        "    .cfi_def_cfa_offset 8\n"
        "    call 3f\n"
        "    .cfi_def_cfa_offset 12\n"
        "3:  popl %eax\n"
        "    .cfi_def_cfa_offset 8\n"
        "    movl stub_slow_path - 3b(%eax), %eax\n"
        "    xchgl %eax, (%esp)\n"
        "    call *(%esp)\n"
        "    leal 4(%esp), %esp\n"
        "    .cfi_def_cfa_offset 4\n"
        "2:  pushl %ecx\n"
        "    .cfi_def_cfa_offset 8\n"
        "    call 4f\n"
        "    .cfi_def_cfa_offset 12\n"
        "4:  popl %ecx\n"
        "    .cfi_def_cfa_offset 8\n"
        "    movl stub_displacement - 4b(%ecx), %ecx\n"
        "    movl %gs:(%ecx), %ecx\n"
        "    jecxz 1b\n"
        "    pushl %eax\n"
        "    .cfi_def_cfa_offset 12\n"
        "    movl 12(%esp), %eax\n"
        "    incl (%ecx, %eax, 8)\n"
        "    popl %eax\n"
        "    .cfi_def_cfa_offset 8\n"
        "    popl %ecx\n"
        "    .cfi_def_cfa_offset 4\n"
        "    ret\n"
        "    .cfi_endproc\n"
        ".size fake_call, . - fake_call\n");
#endif

#define STUB_SLOTS 1000u

static inline hotfn_counters *stub_counters(uint32_t threads)
{
    hotfn_counters *c = NULL;
    hotfn_row_access access = HOTFN_ROW_ACCESS_INIT;

    if (!CHECK_EQ_I64(hotfn_counters_create(&c, STUB_SLOTS, threads, NULL, NULL), HOTFN_OK)) {
        exit(1);
    }
    hotfn_counters_get_access(c, &access);
    stub_slow_path = access.slow_path;
    stub_displacement = access.displacement;
    return c;
}

static inline uint64_t stub_sum(const hotfn_counters *c, uint32_t slot)
{
    uint64_t total = 0;

    CHECK_EQ_I64(hotfn_counters_sum(c, slot, 1, &total), HOTFN_OK);
    return total;
}

static inline hfn_row_memory stub_memory(const hotfn_counters *c)
{
    return hfn_counters_get_memory(c);
}

#endif
