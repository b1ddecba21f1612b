/* SPDX-License-Identifier: MIT */
/* HOT PATH: where a timing stub calls, before and behind the body of a function.  The stub's frame
 * (hfn_time_frame) lies above the return address.  The C functions keep every register, but not the
 * flags: hand-written functions may give them back, so that the exits keep them.  At the entry of what is timed
 * none are live, and the count in front has changed them. */
#include "arch/x86/save.h"

    .text

.macro  begin name
    .globl  \name
    .hidden \name
    .type   \name, @function
    .p2align 4
\name:
    .cfi_startproc
    endbr64
.endm

.macro  end name
    ret
    .cfi_endproc
    .size   \name, . - \name
.endm

.macro  at_entry name, target
    begin   \name
    save    rdi
    leaq    16(%rsp), %rdi
    call    \target
    restore rdi
    end     \name
.endm

.macro  at_exit name, target
    begin   \name
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
    end     \name
.endm

    at_entry hfn_time_enter_full_entry, hfn_time_enter_full
    at_entry hfn_time_enter_sampled_entry, hfn_time_enter_sampled
    at_exit hfn_time_exit_full_entry, hfn_time_exit_full
    at_exit hfn_time_exit_sampled_entry, hfn_time_exit_sampled

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
