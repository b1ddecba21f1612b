/* SPDX-License-Identifier: MIT */
/* For i386: what stands around the C function that a timing stub calls. */
#ifndef HFN_ARCH_X86_ASM_32_H
#define HFN_ARCH_X86_ASM_32_H

#include "arch/x86/asm.h"

#define FRAME_BYTES 36  /* of hfn_time_frame */
#define ROOM_BYTES 24   /* below it, without arguments */
#define SAVED_BYTES 20  /* and the return address */
#define SAVED_EAX 12

.macro  begin name
    function \name
    save_flags
    save    ecx
    save    edx
.endm

/* target(frame, ecx, edx), the frame being in eax */
.macro  finish name, target
    pushl   %edx
    .cfi_adjust_cfa_offset 4
    pushl   %ecx
    .cfi_adjust_cfa_offset 4
    pushl   %eax
    .cfi_adjust_cfa_offset 4
    call    \target
    leal    12(%esp), %esp
    .cfi_adjust_cfa_offset -12
    restore edx
    restore ecx
    restore_flags
    ret
    end_function \name
.endm

/* Behind the return address stand the number of words that the function takes on the stack and room for
 * them, 24 bytes and as many times 64 as it needs; then the frame, the caller's return address, and the
 * words, which are copied down. */
.macro  enter name, target
    begin   \name
    movl    SAVED_BYTES(%esp), %ecx
    leal    9(%ecx), %eax
    shrl    $4, %eax
    shll    $6, %eax
    leal    SAVED_BYTES + ROOM_BYTES(%esp, %eax), %eax
    testl   %ecx, %ecx
    jz      2f
1:  movl    FRAME_BYTES(%eax, %ecx, 4), %edx
    movl    %edx, SAVED_BYTES - 4(%esp, %ecx, 4)
    decl    %ecx
    jnz     1b
2:  movl    SAVED_BYTES(%esp), %ecx     /* the first two, if it takes as many */
    movl    SAVED_BYTES + 4(%esp), %edx
    finish  \name, \target
.endm

.macro  leave_ name, target
    begin   \name
    leal    SAVED_BYTES(%esp), %eax
    movl    SAVED_EAX(%esp), %ecx       /* what it returns */
    finish  \name, \target
.endm

#endif
