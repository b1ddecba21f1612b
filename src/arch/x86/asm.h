/* SPDX-License-Identifier: MIT */
/* Macros for assembly of both word sizes: begin and end of a function, registers saved and
 * restored with their unwind rows, flags in a register.  No file needs an executable stack. */
#ifndef HFN_ARCH_X86_ASM_H
#define HFN_ARCH_X86_ASM_H

#ifdef __x86_64__
#define WORD 8
#define AX rax
#define ENDBR endbr64
#else
#define WORD 4
#define AX eax
#define ENDBR endbr32
#endif

    .section .note.GNU-stack, "", @progbits
    .text

.macro  function name, align=4
    .globl  \name
    .hidden \name
    .type   \name, @function
    .p2align \align
\name:
    .cfi_startproc
    ENDBR
.endm
.macro  end_function name
    .cfi_endproc
    .size   \name, . - \name
.endm

.macro  save register
    push    %\register
    .cfi_adjust_cfa_offset WORD
    .cfi_rel_offset \register, 0
.endm
.macro  restore register
    pop     %\register
    .cfi_adjust_cfa_offset -WORD
    .cfi_restore \register
.endm

/* Copies the arithmetic flags to AX, much faster than pushf and popf. */
.macro  flags_to_ax
    lahf                        /* SF ZF AF PF CF to ah */
    seto    %al
.endm
.macro  flags_from_ax
    addb    $0x7f, %al          /* 1 + 0x7f overflows, 0 + 0x7f does not */
    sahf
.endm

/* Saves AX and, below it, the flags. */
.macro  save_flags
    save    AX
    flags_to_ax
    push    %AX
    .cfi_adjust_cfa_offset WORD
.endm
.macro  restore_flags
    pop     %AX
    .cfi_adjust_cfa_offset -WORD
    flags_from_ax
    restore AX
.endm

#endif
