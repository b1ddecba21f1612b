/* SPDX-License-Identifier: MIT */
/* HOT PATH: the slow path of an i386 stub whose thread has no row yet (counters.h, "slow_path's
 * contract"). All registers that the C function may change are saved here; it is compiled with
 * -mgeneral-regs-only, so vector registers are not. */
#include "arch/x86/asm.h"

    function hfn_thread_row_entry
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
    end_function hfn_thread_row_entry

/* int64_t hfn_thread_row_displacement(void) */
    function hfn_thread_row_displacement
    call    1f
    .cfi_adjust_cfa_offset 4
1:  popl    %eax
    .cfi_adjust_cfa_offset -4
    addl    $_GLOBAL_OFFSET_TABLE_ + (. - 1b), %eax
    movl    hfn_thread_row@gotntpoff(%eax), %eax
    cltd
    ret
    end_function hfn_thread_row_displacement
