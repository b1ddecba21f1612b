/* SPDX-License-Identifier: MIT */
/* HOT PATH: entry and exit probes like those of time_entry_32.S, for runs that record
 * allocations. */
#include "arch/x86/asm_32.h"

    enter   hfn_alloc_enter_entry, C(hfn_alloc_enter)
    leave_  hfn_alloc_exit_entry, C(hfn_alloc_exit)

/* uintptr_t hfn_alloc_call(uintptr_t function, uintptr_t argument): calls a C function with an
 * aligned stack (i386 psABI, 2.2.2).  The probes save the registers that the function may
 * change. */
    function hfn_alloc_call
    save    ebp
    movl    %esp, %ebp
    .cfi_def_cfa_register ebp
    andl    $-16, %esp
    leal    -16(%esp), %esp
    movl    12(%ebp), %eax
    movl    %eax, (%esp)
    call    *8(%ebp)
    leave
    .cfi_def_cfa esp, 4
    .cfi_restore ebp
    ret
    end_function hfn_alloc_call
