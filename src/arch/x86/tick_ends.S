/* SPDX-License-Identifier: MIT */
/* HOT PATH: the two ends of a timed call by a tick clock, for the calls that most are: the thread
 * has a row, no tick has come since its latest event, the callee has a place in the tree at which
 * the hints point, and the call that ends is the innermost one of the log and has no start.
 * tick_mode.c sees to all other calls and has the same stores in the same order.  The stub's frame
 * lies above the return address.  All registers are kept, and behind the body the flags.
 *
 * Offsets: hfn_time_engine, hfn_time_state, hfn_time_node, hfn_open_call, hfn_time_frame; timing.c
 * has them checked. */
#include "arch/x86/asm.h"

    .equ    ENGINE_THREAD_AT, 0
    .equ    ENGINE_LOG_AT, 4
    .equ    ENGINE_CLOCK, 8
    .equ    ENGINE_TICK, 16
    .equ    ENGINE_SESSION, 24
    .equ    ENGINE_HINTS_AT, 28
    .equ    ENGINE_NODES, 32
    .equ    CLOCK_STOPPED, 0
    .equ    LAST_TICK, 24
    .equ    DEPTH, 36
    .equ    CURRENT_NODE, 76
    .equ    STARTED, 120
    .equ    NODE_PARENT, 0
    .equ    NODE_SLOT, 4
    .equ    NODE_CALLS, 16
    .equ    NODE_SHIFT, 6
    .equ    LOG_CAPACITY, 4096
    .equ    LOG_SHIFT, 5
    .equ    LOG_BYTES, 32
    .equ    LOG_FRAME, 0
    .equ    LOG_HOW, 24
    .equ    CALLER, 8
    .equ    PLACE, 12
    .equ    HOW, 16
    .equ    SLOT, 32
    .equ    PARENT_FACTOR, 0x9e3779b1
    .equ    SLOT_FACTOR, 0x85ebca6b
    .equ    HINT_SHIFT, 19

/* The thread's state to rcx; to otherwise if there is no row.  Changes temporary. */
.macro  find_state otherwise, temporary32, temporary
    load_row_displacement rcx
    movq    %THREAD:(%rcx), %rcx
    testq   %rcx, %rcx
    jz      \otherwise
    movl    hfn_time + ENGINE_THREAD_AT(%rip), \temporary32
    addq    \temporary, %rcx
.endm

/* The place of the log with the number in edx to rsi.  Changes rdi. */
.macro  find_place
    movl    hfn_time + ENGINE_LOG_AT(%rip), %esi
    movl    %edx, %edi
    addq    %rcx, %rsi
    shlq    $LOG_SHIFT, %rdi
    addq    %rdi, %rsi
.endm

/* Compare the clock with the latest event of the thread.  First and last in a hook, so that most
 * ticks of a hook come in between.  Changes the register. */
.macro  compare_tick register
    movq    hfn_time + ENGINE_TICK(%rip), \register
    movq    (\register), \register
    cmpq    LAST_TICK(%rcx), \register
.endm

/* The same, but the processor loads the clock only when `value` is known: a register that the code
 * before the hook computes.  Otherwise it would often load it long before that code is finished. */
.macro  compare_tick_behind value32, register32, register
    movl    \value32, \register32
    andl    $0, \register32
    addq    hfn_time + ENGINE_TICK(%rip), \register
    movq    (\register), \register
    cmpq    LAST_TICK(%rcx), \register
.endm

    .equ    FRAME, 64
    function hfn_tick_enter_entry, align=6
    save    rax
    save    rcx
    find_state 7f, %eax, %rax
    compare_tick_behind %edi, %eax, %rax   /* the first argument */
    jne     7f
    save    rdx
    save    rsi
    save    rdi
    save    r8
    save    r9
    cmpl    $CLOCK_STOPPED, hfn_time + ENGINE_CLOCK(%rip)
    je      5f
    movl    DEPTH(%rcx), %edx
    cmpl    $LOG_CAPACITY, %edx
    jae     5f
    find_place
    leaq    FRAME(%rsp), %rdi
    movq    LOG_FRAME - LOG_BYTES(%rsi), %rax
    decq    %rax
    cmpq    %rdi, %rax                  /* was_left */
    jb      5f
    movl    CURRENT_NODE(%rcx), %eax
    movl    FRAME + SLOT(%rsp), %r8d
    imull   $PARENT_FACTOR, %eax, %r9d
    imull   $SLOT_FACTOR, %r8d, %edi
    addl    %edi, %r9d
    shrl    $HINT_SHIFT, %r9d
    movl    hfn_time + ENGINE_HINTS_AT(%rip), %edi
    addq    %rcx, %rdi
    movl    (%rdi, %r9, 4), %r9d
    movq    %r9, %rdi
    shlq    $NODE_SHIFT, %rdi
    addq    hfn_time + ENGINE_NODES(%rip), %rdi
    incl    %r9d                        /* the place's number */
    cmpl    %r8d, NODE_SLOT(%rdi)
    jne     5f
    movl    NODE_PARENT(%rdi), %r8d
    incl    %r8d
    cmpl    %eax, %r8d
    jne     5f
    incq    NODE_CALLS(%rdi)
    movl    FRAME + SLOT(%rsp), %r8d
    movq    %r9, %rdi
    orl     hfn_time + ENGINE_SESSION(%rip), %r8d
    shlq    $32, %rdi
    orq     %rdi, %r8
    movl    %eax, FRAME + CALLER(%rsp)
    movl    %edx, FRAME + PLACE(%rsp)
    movq    %r8, FRAME + HOW(%rsp)
    incl    %edx
    leaq    FRAME(%rsp), %rdi
    movl    %edx, DEPTH(%rcx)           /* until then a handler's calls may use the place */
    movq    %rdi, LOG_FRAME(%rsi)
    movq    %r8, LOG_HOW(%rsi)
    movl    %r9d, CURRENT_NODE(%rcx)
3:  .cfi_remember_state
    restore r9
    restore r8
    restore rdi
    restore rsi
    restore rdx
    compare_tick %rax
    jne     6f
4:  .cfi_remember_state
    restore rcx
    restore rax
    ret
    .cfi_restore_state
6:  save    rdi
    movq    %rcx, %rdi
    call    hfn_tick_charge_hook
    restore rdi
    jmp     4b
7:  save    rdi
    save    rsi
    save    rdx                         /* aligns the stack */
    leaq    FRAME - 16(%rsp), %rdi
    call    hfn_tick_enter
    restore rdx
    restore rsi
    restore rdi
    jmp     4b
    .cfi_restore_state
5:  leaq    FRAME(%rsp), %rdi
    call    hfn_tick_enter
    jmp     3b
    end_function hfn_tick_enter_entry

    .equ    FRAME, 48
    function hfn_tick_exit_entry, align=6
    save    rax
    flags_to_ax
    save    rcx
    save    rdx
    find_state 4f, %edx, %rdx
    compare_tick_behind %eax, %edx, %rdx   /* the result, with flags in its low half */
    jne     7f
    save    rsi
    save    rdi
    movl    DEPTH(%rcx), %edx
    decl    %edx
    cmpl    $LOG_CAPACITY, %edx
    jae     5f
    cmpl    %edx, STARTED(%rcx)
    ja      5f
    find_place
    leaq    FRAME(%rsp), %rdi
    cmpq    %rdi, LOG_FRAME(%rsi)
    jne     5f
    movl    FRAME + CALLER(%rsp), %edi
    movq    $0, LOG_FRAME(%rsi)
    movl    %edx, DEPTH(%rcx)           /* from then on the place is a handler's */
    movl    %edi, CURRENT_NODE(%rcx)
3:  .cfi_remember_state
    restore rdi
    restore rsi
    compare_tick %rdx
    jne     6f
4:  .cfi_remember_state
    restore rdx
    restore rcx
    flags_from_ax
    restore rax
    ret
    .cfi_restore_state
6:  save    rdi
    save    rsi                         /* aligns the stack */
    movq    %rcx, %rdi
    call    hfn_tick_charge_hook
    restore rsi
    restore rdi
    jmp     4b
7:  save    rdi
    save    rsi
    leaq    FRAME(%rsp), %rdi
    call    hfn_tick_exit
    restore rsi
    restore rdi
    jmp     4b
    .cfi_restore_state
5:  leaq    FRAME(%rsp), %rdi
    call    hfn_tick_exit
    jmp     3b
    end_function hfn_tick_exit_entry
