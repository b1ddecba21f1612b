/* SPDX-License-Identifier: MIT */
/* i386: macros for the entry and exit probes around the C functions that timing stubs call. */
#ifndef HFN_ARCH_X86_ASM_32_H
#define HFN_ARCH_X86_ASM_32_H

#include "arch/x86/asm.h"

#define FRAME_BYTES 36  /* of hfn_time_frame */
#define ROOM_BYTES 24   /* below it, without arguments */
#define SAVED_BYTES 20  /* flags, eax, ecx, edx and the return address */
#define SAVED_EAX 12

.macro  begin name
    function \name
    save_flags
    save    ecx
    save    edx
.endm

/* Calls target(frame, ecx, edx) with the frame in eax. */
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

/* Above the return address are the number of words that the function takes on the stack and room
 * for them, 24 bytes plus a multiple of 64; then the frame, the caller's return address, and the
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
2:  movl    SAVED_BYTES(%esp), %ecx     /* the first two words, if there are two */
    movl    SAVED_BYTES + 4(%esp), %edx
    finish  \name, \target
.endm

.macro  leave_ name, target
    begin   \name
    leal    SAVED_BYTES(%esp), %eax
    movl    SAVED_EAX(%esp), %ecx       /* the returned value */
    finish  \name, \target
.endm

#endif
