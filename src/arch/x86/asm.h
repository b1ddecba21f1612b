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

/* The segment of the thread's own data, where the pointer to its row is (os/row_word.h). */
#if defined(_WIN32) && defined(__x86_64__)
#define THREAD gs
#elif defined(_WIN32)
#define THREAD fs
#elif defined(__x86_64__)
#define THREAD fs
#else
#define THREAD gs
#endif

#ifndef _WIN32
    .section .note.GNU-stack, "", @progbits
#endif
    .text

/* C(name): the name that C code has for the assembler; Windows x86 puts `_` in front of it. */
#if defined(_WIN32) && !defined(__x86_64__)
#define C(name) _##name
#else
#define C(name) name
#endif

.macro  begin_function name, align
    .globl  \name
#ifndef _WIN32
    .hidden \name
    .type   \name, @function
#endif
    .p2align \align
\name:
    .cfi_startproc
    ENDBR
.endm
.macro  function name, align=4
#if defined(_WIN32) && !defined(__x86_64__)
    begin_function _\name, \align
#else
    begin_function \name, \align
#endif
.endm
.macro  end_function name
    .cfi_endproc
#ifndef _WIN32
    .size   \name, . - \name
#endif
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

#ifdef __x86_64__
/* The displacement of the word that points to the thread's row, from the segment's base. */
.macro  load_row_displacement register
#if defined(_WIN32)
    movslq  hfn_os_row_word_at(%rip), %\register
#elif defined(HFN_CORE)
    movq    hfn_core_word_at(%rip), %\register
#else
    movq    hfn_thread_row@gottpoff(%rip), %\register
#endif
.endm
#endif

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
