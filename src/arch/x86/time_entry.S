/* SPDX-License-Identifier: MIT */
/* HOT PATH: what a timing stub calls before and behind the body of a function.  The stub's frame
 * (hfn_time_frame) lies above the return address.  The C functions preserve every register, but not
 * the flags: hand-written functions may return flags, so the exits preserve them.  At the entry of
 * a timed function none are live. */
#include "arch/x86/asm.h"

.macro  at_entry name, target
    function \name
    save    rdi
    leaq    16(%rsp), %rdi
    call    \target
    restore rdi
    ret
    end_function \name
.endm

.macro  at_exit name, target
    function \name
    save_flags
    save    rdi
    leaq    32(%rsp), %rdi
    call    \target
    restore rdi
    restore_flags
    ret
    end_function \name
.endm

    at_entry hfn_time_enter_sampled_entry, hfn_time_enter_sampled
    at_exit hfn_time_exit_sampled_entry, hfn_time_exit_sampled

/* void hfn_time_probe(uint64_t slot, void (*enter)(void), void (*exit)(void), uint64_t calls):
 * what a stub does around a body that only returns, `calls` times, to measure its cost. */
    function hfn_time_probe
    save    rbx
    save    rbp
    save    r12
    save    r13
    movq    %rdi, %rbp
    movq    %rsi, %r12
    movq    %rdx, %r13
    movq    %rcx, %rbx
1:  call    2f
    decq    %rbx
    jnz     1b
    restore r13
    restore r12
    restore rbp
    restore rbx
    ret
2:  .cfi_adjust_cfa_offset 40
    leaq    -56(%rsp), %rsp
    .cfi_adjust_cfa_offset 56
    movq    %rbp, 32(%rsp)
    testq   %r12, %r12
    jz      3f
    call    *%r12
    call    4f
    call    *%r13
3:  leaq    56(%rsp), %rsp
    .cfi_adjust_cfa_offset -56
    ret
4:  ret
    end_function hfn_time_probe
