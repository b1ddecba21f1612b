/* SPDX-License-Identifier: MIT */
/* HOT PATH: as time_entry.S, for a run that keeps memory.  Flags pass in and out. */
#include "arch/x86/save.h"

    .text

.macro  entry name, target
    .globl  \name
    .hidden \name
    .type   \name, @function
    .p2align 4
\name:
    .cfi_startproc
    endbr64
    save    rax
    lahf                        /* SF ZF AF PF CF to ah */
    seto    %al
    pushq   %rax
    .cfi_adjust_cfa_offset 8
    save    rdi
    save    rsi
    save    rdx                 /* the stack is aligned now, as at any C function */
.endm

/* target, called with rdi and what is in rsi and rdx */
.macro  finish name, target
    leaq    48(%rsp), %rdi      /* the frame */
    call    \target
    restore rdx
    restore rsi
    restore rdi
    popq    %rax
    .cfi_adjust_cfa_offset -8
    addb    $0x7f, %al          /* 1 + 0x7f overflows, 0 + 0x7f does not */
    sahf
    restore rax
    ret
    .cfi_endproc
    .size   \name, . - \name
.endm

    entry   hfn_alloc_enter_entry
    movq    %rsi, %rdx
    movq    %rdi, %rsi
    finish  hfn_alloc_enter_entry, hfn_alloc_enter

    entry   hfn_alloc_exit_entry
    movq    32(%rsp), %rsi      /* what was in rax */
    finish  hfn_alloc_exit_entry, hfn_alloc_exit

/* uintptr_t hfn_alloc_call(uintptr_t function, uintptr_t argument): any function of the C calling
 * convention.  Vector registers are not kept: around malloc and free nobody may rely on them
 * (System V x86-64 psABI, 3.2.1). */
    .globl  hfn_alloc_call
    .hidden hfn_alloc_call
    .type   hfn_alloc_call, @function
    .p2align 4
hfn_alloc_call:
    .cfi_startproc
    endbr64
    save    rbp
    movq    %rsp, %rbp
    .cfi_def_cfa_register rbp
    pushq   %rcx
    pushq   %rdx
    pushq   %rsi
    pushq   %rdi
    pushq   %r8
    pushq   %r9
    pushq   %r10
    pushq   %r11
    andq    $-16, %rsp
    movq    %rdi, %rax
    movq    %rsi, %rdi
    call    *%rax
    leaq    -64(%rbp), %rsp
    popq    %r11
    popq    %r10
    popq    %r9
    popq    %r8
    popq    %rdi
    popq    %rsi
    popq    %rdx
    popq    %rcx
    popq    %rbp
    .cfi_def_cfa rsp, 8
    .cfi_restore rbp
    ret
    .cfi_endproc
    .size   hfn_alloc_call, . - hfn_alloc_call

    .section .note.GNU-stack, "", @progbits
