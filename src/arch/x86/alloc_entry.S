/* SPDX-License-Identifier: MIT */
/* HOT PATH: entry and exit probes like those of time_entry.S, for runs that record allocations.
 * All registers and flags are preserved. */
#include "arch/x86/asm.h"

.macro  entry name, target
    function \name
    save_flags
    save    rdi
    save    rsi
    save    rdx                 /* the stack is aligned now, as at any C function */
.endm

/* Calls target(frame, rsi, rdx). */
.macro  finish name, target
    leaq    48(%rsp), %rdi      /* the frame */
    call    \target
    restore rdx
    restore rsi
    restore rdi
    restore_flags
    ret
    end_function \name
.endm

    entry   hfn_alloc_enter_entry
    movq    %rsi, %rdx
    movq    %rdi, %rsi
    finish  hfn_alloc_enter_entry, hfn_alloc_enter

    entry   hfn_alloc_exit_entry
    movq    32(%rsp), %rsi      /* saved rax */
    finish  hfn_alloc_exit_entry, hfn_alloc_exit

/* uintptr_t hfn_alloc_call(uintptr_t function, uintptr_t argument): calls a C function and
 * preserves the general registers.  Vector registers are not saved, because callers of malloc
 * and free may not rely on them (System V x86-64 psABI, 3.2.1). */
    function hfn_alloc_call
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
    end_function hfn_alloc_call
