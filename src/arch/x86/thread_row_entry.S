/* SPDX-License-Identifier: MIT */
/* HOT PATH: the slow path of a stub whose thread has no row yet (counters.h, "slow_path's
 * contract"). The original rcx is at [rsp - 8], in the 128 bytes below rsp that signal handlers
 * do not overwrite; the first push writes the same value to the same place.  All registers that
 * the C function may change are saved here; it is compiled with -mgeneral-regs-only, so vector
 * registers are not. */
#include "arch/x86/asm.h"

    function hfn_thread_row_entry
    movq    -8(%rsp), %rcx
    save    rcx
    pushfq
    .cfi_adjust_cfa_offset 8
    cld
    save    rax
    save    rdx
    save    rsi
    save    rdi
    save    r8
    save    r9
    save    r10
    save    r11
    save    rbp
    movq    %rsp, %rbp
    .cfi_def_cfa_register rbp
    andq    $-16, %rsp
    call    hfn_thread_row_first_call
    movq    %rbp, %rsp
    .cfi_def_cfa_register rsp
    restore rbp
    restore r11
    restore r10
    restore r9
    restore r8
    restore rdi
    restore rsi
    restore rdx
    restore rax
    popfq
    .cfi_adjust_cfa_offset -8
    restore rcx
    ret
    end_function hfn_thread_row_entry

/* int64_t hfn_thread_row_displacement(void) */
    function hfn_thread_row_displacement
    movq    hfn_thread_row@gottpoff(%rip), %rax
    ret
    end_function hfn_thread_row_displacement
