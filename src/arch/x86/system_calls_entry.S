/* SPDX-License-Identifier: MIT */
/* The replacements of prctl and syscall in the core (src/counters/core/system_calls.c): they note
 * the arguments of a call that may limit system calls, and jump to the original with unchanged
 * registers and stack, because the thread that clone creates returns from there too, and so that no
 * return address leads into the core. */
#include "arch/x86/asm.h"

#include <asm/unistd.h>

/* Call hfn_core_note_call(number, a, b, c) and keep all registers. */
.macro note_call number, a, b, c
    .irp    register, rax, rdi, rsi, rdx, rcx, r8, r9
    pushq   %\register
    .cfi_adjust_cfa_offset 8
    .endr
    pushq   \c
    .cfi_adjust_cfa_offset 8
    pushq   \b
    .cfi_adjust_cfa_offset 8
    pushq   \a
    .cfi_adjust_cfa_offset 8
    pushq   \number
    .cfi_adjust_cfa_offset 8
    popq    %rdi
    .cfi_adjust_cfa_offset -8
    popq    %rsi
    .cfi_adjust_cfa_offset -8
    popq    %rdx
    .cfi_adjust_cfa_offset -8
    popq    %rcx
    .cfi_adjust_cfa_offset -8
    call    hfn_core_note_call
    .irp    register, r9, r8, rcx, rdx, rsi, rdi, rax
    popq    %\register
    .cfi_adjust_cfa_offset -8
    .endr
.endm

    .globl  hfn_core_prctl
    .type   hfn_core_prctl, @function
    .p2align 4
hfn_core_prctl:
    .cfi_startproc
    ENDBR
    note_call $__NR_prctl, %rdi, %rsi, %rdx
    jmp     *hfn_next_prctl(%rip)
    .cfi_endproc
    .size   hfn_core_prctl, . - hfn_core_prctl

    .globl  hfn_core_syscall
    .type   hfn_core_syscall, @function
    .p2align 4
hfn_core_syscall:
    .cfi_startproc
    ENDBR
    cmpl    $__NR_prctl, %edi
    je      1f
    cmpl    $__NR_seccomp, %edi
    je      1f
    jmp     *hfn_next_syscall(%rip)
1:  note_call %rdi, %rsi, %rdx, %rcx
    jmp     *hfn_next_syscall(%rip)
    .cfi_endproc
    .size   hfn_core_syscall, . - hfn_core_syscall
