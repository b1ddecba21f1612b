/* SPDX-License-Identifier: MIT */
/* The floor of bench/cheap.py: probes that push a call on the open-call stack of the thread and pop
 * it, and keep nothing else.  They replace those of arch/x86/timed_probes.S in a copy of the agent,
 * so stubs, gates and counts are those of the product. */
#include "arch/x86/asm.h"
#include <timing_offsets.h> /* counters/timing/offsets.c */

/* The thread's state to rcx; to otherwise if there is no row.  Changes rax. */
.macro  find_state otherwise
    load_row_displacement rcx
    movq    %THREAD:(%rcx), %rcx
    testq   %rcx, %rcx
    jz      \otherwise
    movl    hfn_time + ENGINE_THREAD_AT(%rip), %eax
    addq    %rax, %rcx
.endm

/* The entry of the log with the number in edx to rdx.  Changes rax. */
.macro  find_entry
    movl    hfn_time + ENGINE_LOG_AT(%rip), %eax
    addq    %rcx, %rax
    shlq    $LOG_SHIFT, %rdx
    addq    %rax, %rdx
.endm

    function hfn_tick_enter_entry, align=6
    save    rax
    save    rcx
    save    rdx
    find_state 1f
    movl    DEPTH(%rcx), %edx
    cmpl    $LOG_CAPACITY, %edx
    jae     1f
    incl    DEPTH(%rcx)
    find_entry
    leaq    32(%rsp), %rax              /* the stub's frame */
    movq    %rax, LOG_FRAME(%rdx)
1:  restore rdx
    restore rcx
    restore rax
    ret
    end_function hfn_tick_enter_entry

    function hfn_tick_exit_entry, align=6
    save_flags
    save    rcx
    save    rdx
    find_state 1f
    movl    DEPTH(%rcx), %edx
    decl    %edx
    cmpl    $LOG_CAPACITY, %edx
    jae     1f
    movl    %edx, DEPTH(%rcx)
    find_entry
    movq    $0, LOG_FRAME(%rdx)
1:  restore rdx
    restore rcx
    restore_flags
    ret
    end_function hfn_tick_exit_entry

/* Not called by ticks; without them the linker would take the product's file for these two. */
    function hfn_counter_enter_entry
    ud2
    end_function hfn_counter_enter_entry
    function hfn_counter_exit_entry
    ud2
    end_function hfn_counter_exit_entry
