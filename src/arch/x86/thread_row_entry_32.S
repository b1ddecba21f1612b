/* SPDX-License-Identifier: MIT */
/* HOT PATH: where a stub calls when its thread has no row yet (counters.h, "slow_path's contract"); i386.
 * Everything that the C function may change is saved here: it is compiled with -mgeneral-regs-only, so
 * vector registers need no room. */
#include "arch/x86/save_32.h"

    .text

    .globl  hfn_thread_row_entry
    .hidden hfn_thread_row_entry
    .type   hfn_thread_row_entry, @function
    .p2align 4
hfn_thread_row_entry:
    .cfi_startproc
    endbr32
    pushfl
    .cfi_adjust_cfa_offset 4
    cld
    save    eax
    save    ecx
    save    edx
    save    ebp
    movl    %esp, %ebp
    .cfi_def_cfa_register ebp
    andl    $-16, %esp
    call    hfn_thread_row_first_call
    movl    %ebp, %esp
    .cfi_def_cfa_register esp
    restore ebp
    restore edx
    restore ecx
    restore eax
    popfl
    .cfi_adjust_cfa_offset -4
    ret
    .cfi_endproc
    .size   hfn_thread_row_entry, . - hfn_thread_row_entry

/* int64_t hfn_thread_row_displacement(void) */
    .globl  hfn_thread_row_displacement
    .hidden hfn_thread_row_displacement
    .type   hfn_thread_row_displacement, @function
    .p2align 4
hfn_thread_row_displacement:
    .cfi_startproc
    endbr32
    call    1f
    .cfi_adjust_cfa_offset 4
1:  popl    %eax
    .cfi_adjust_cfa_offset -4
    addl    $_GLOBAL_OFFSET_TABLE_ + (. - 1b), %eax
    movl    hfn_thread_row@gotntpoff(%eax), %eax
    cltd
    ret
    .cfi_endproc
    .size   hfn_thread_row_displacement, . - hfn_thread_row_displacement

    .section .note.GNU-stack, "", @progbits
