/* SPDX-License-Identifier: MIT */
/* arch/objc_send.h for x86-64 (System V psABI, 3.2.3): arguments are in rdi, rsi, rdx, rcx, r8, r9
 * and xmm0 to xmm7; al has the number of vector registers of a variadic call.  Of wider vectors, no
 * instruction here changes the upper halves. */
#include "arch/objc_send.h"
#include "arch/x86/asm.h"

#define VECTORS 128 /* with seven registers and the return address, the stack is aligned */

.macro  send name, receiver, selector, variant
    function \name
    testq   %\receiver, %\receiver
    jz      1f
    save    rax
    save    rdi
    save    rsi
    save    rdx
    save    rcx
    save    r8
    save    r9
    subq    $VECTORS, %rsp
    .cfi_adjust_cfa_offset VECTORS
    .irp    n, 0, 1, 2, 3, 4, 5, 6, 7
    movups  %xmm\n, 16 * \n(%rsp)
    .endr
    movq    %\receiver, %rdi
    movq    %\selector, %rsi
    movl    $\variant, %edx
    call    hfn_objc_choose
    movq    %rax, %r11
    .irp    n, 0, 1, 2, 3, 4, 5, 6, 7
    movups  16 * \n(%rsp), %xmm\n
    .endr
    addq    $VECTORS, %rsp
    .cfi_adjust_cfa_offset -VECTORS
    restore r9
    restore r8
    restore rcx
    restore rdx
    restore rsi
    restore rdi
    restore rax
    jmp     *%r11
1:  jmp     *hfn_objc_originals + 8 * \variant(%rip)
    end_function \name
.endm

    .hidden hfn_objc_choose
    .hidden hfn_objc_originals
    send    hfn_objc_send, rdi, rsi, HFN_OBJC_SEND
    send    hfn_objc_send_fpret, rdi, rsi, HFN_OBJC_SEND_FPRET
    /* the address of the result comes first */
    send    hfn_objc_send_stret, rsi, rdx, HFN_OBJC_SEND_STRET
