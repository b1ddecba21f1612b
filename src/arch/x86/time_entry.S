/* SPDX-License-Identifier: MIT */
/* HOT PATH: where a timing stub calls, before and behind the body of a function.  The stub's frame
 * (hfn_time_frame) lies above the return address.  The C functions keep every register, but not the
 * flags: hand-written functions pass them in and out, or leave them as they are. */
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
    leaq    32(%rsp), %rdi
    call    \target
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

    entry hfn_time_enter_full_entry, hfn_time_enter_full
    entry hfn_time_enter_sampled_entry, hfn_time_enter_sampled
    entry hfn_time_exit_full_entry, hfn_time_exit_full
    entry hfn_time_exit_sampled_entry, hfn_time_exit_sampled

/* void hfn_time_probe(uint64_t slot, void (*enter)(void), void (*exit)(void), uint64_t calls):
 * what a stub does around a body that only returns, again and again, to learn what it costs. */
    .globl  hfn_time_probe
    .hidden hfn_time_probe
    .type   hfn_time_probe, @function
    .p2align 4
hfn_time_probe:
    .cfi_startproc
    endbr64
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
    pushq   %rbp
    .cfi_adjust_cfa_offset 8
    leaq    -32(%rsp), %rsp
    .cfi_adjust_cfa_offset 32
    testq   %r12, %r12
    jz      3f
    call    *%r12
    call    4f
    call    *%r13
3:  leaq    40(%rsp), %rsp
    .cfi_adjust_cfa_offset -40
    ret
4:  ret
    .cfi_endproc
    .size   hfn_time_probe, . - hfn_time_probe

    .section .note.GNU-stack, "", @progbits
