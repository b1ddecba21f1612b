/* SPDX-License-Identifier: MIT */
/* HOT PATH: the entry and exit probes of timed calls for the most frequent case: the thread has a
 * row, the node cache has the callee's place in the tree, and the call that ends is the innermost
 * one of the open-call stack.  With the tick clock, no tick has passed since the latest event, and
 * the call has no start.  With the counter, the clock is rdtsc, and no histograms, slow calls or
 * events are recorded.  tick_mode.c and counter_mode.c handle all other calls, with the same stores
 * in the same order.  The stub's frame is above the probe's return address.  All registers are
 * preserved; the exit probe also preserves the flags. */
#include "arch/x86/asm.h"
#include <timing_offsets.h> /* counters/timing/offsets.c */

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

/* In the core: one frame of a stub more or less is on a stack (counters/timing/engine.h). */
.macro  count_frame change
#ifdef HFN_CORE
    \change\()q OPEN_FRAMES(%rcx)
#endif
.endm

/* Find the callee's place, count the call there, and fill the stub's frame; to otherwise if there
 * is a special case.  Then edx is the depth with the new call, rsi its entry of the log, r8 its
 * call word, r9d its place, and rdi the frame.  Changes rax. */
.macro  count_at_place otherwise
    movl    DEPTH(%rcx), %edx
    cmpl    $LOG_CAPACITY, %edx
    jae     \otherwise
    find_place
    leaq    FRAME(%rsp), %rdi
    movq    LOG_FRAME - LOG_BYTES(%rsi), %rax
    decq    %rax
    cmpq    %rdi, %rax                  /* the call before was left */
    jb      \otherwise
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
    jne     \otherwise
    movl    NODE_PARENT(%rdi), %r8d
    incl    %r8d
    cmpl    %eax, %r8d
    jne     \otherwise
    incq    NODE_CALLS(%rdi)
    movl    FRAME + SLOT(%rsp), %r8d
    movq    %r9, %rdi
    orl     hfn_time + ENGINE_SESSION(%rip), %r8d
    shlq    $32, %rdi
    orq     %rdi, %r8
    movl    %eax, FRAME + CALLER(%rsp)
    movl    %edx, FRAME + PLACE(%rsp)
    movq    %r8, FRAME + CALL_WORD(%rsp)
    incl    %edx
    leaq    FRAME(%rsp), %rdi
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
    count_at_place 5f
    movl    %edx, DEPTH(%rcx)           /* until then a handler's calls may use the place */
    movq    %rdi, LOG_FRAME(%rsi)
    movq    %r8, LOG_CALL_WORD(%rsi)
    movl    %r9d, CURRENT_NODE(%rcx)
    count_frame inc
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
    count_frame dec
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

/* The counter to rdx; the thread's latest event to r8.  Changes rax. */
.macro  read_counter
    movq    LAST_TICK(%rcx), %r8
    rdtsc
    shlq    $32, %rdx
    orq     %rax, %rdx
.endm

/* Charge the time from r8 to rdx, without a cost, to the place in edi; to otherwise if the counter
 * turned back.  If a handler has charged it, nothing remains.  Changes rax, rdx, rdi and r8. */
.macro  charge_place cost, otherwise
    movq    %r8, %rax
    movq    %rdx, %r8
    subq    %rax, %r8
    js      \otherwise
    cmpxchgq %rdx, LAST_TICK(%rcx)
    jne     8f
    movl    hfn_time + \cost(%rip), %eax
    shlq    $NODE_SHIFT, %rdi
    addq    hfn_time + ENGINE_NODES(%rip), %rdi
    addq    %rax, HOOK_TICKS(%rcx)
    subq    %rax, %r8
    addq    %r8, NODE_TOTAL - NODE_BYTES(%rdi)
8:
.endm

    .equ    FRAME, 64
    function hfn_counter_enter_entry, align=6
    save    rax
    save    rcx
    save    rdx
    save    rsi
    save    rdi
    save    r8
    save    r9
    find_state 5f, %eax, %rax
    testl   $FLAG_EVENTS, hfn_time + ENGINE_FLAGS(%rip)
    jnz     5f
    cmpl    $CLOCK_TSC, hfn_time + ENGINE_CLOCK(%rip)
    jne     5f
    count_at_place 5f
    movl    %edx, DEPTH(%rcx)           /* until then a handler's calls may use the place */
    movl    %edx, STARTED(%rcx)
    read_counter
    movl    FRAME + CALLER(%rsp), %edi
    charge_place ENGINE_ENTER_COST, 6f
4:  movq    LAST_TICK(%rcx), %rax
    movq    FRAME + CALL_WORD(%rsp), %r8
    subq    HOOK_TICKS(%rcx), %rax
    leaq    FRAME(%rsp), %rdi
    movq    %rax, FRAME + START(%rsp)
    movq    %rax, LOG_START(%rsi)
    movq    %r8, LOG_CALL_WORD(%rsi)
    movq    %rdi, LOG_FRAME(%rsi)
    movl    %r9d, CURRENT_NODE(%rcx)
3:  .cfi_remember_state
    restore r9
    restore r8
    restore rdi
    restore rsi
    restore rdx
    restore rcx
    restore rax
    ret
    .cfi_restore_state
5:  leaq    FRAME(%rsp), %rdi
    call    hfn_counter_enter
    jmp     3b
6:  movq    %rcx, %rdi
    pushq   %rsi
    .cfi_adjust_cfa_offset 8
    pushq   %rcx                        /* aligns the stack */
    .cfi_adjust_cfa_offset 8
    movq    %rdx, %rsi
    call    hfn_counter_reset_tick
    popq    %rcx
    .cfi_adjust_cfa_offset -8
    popq    %rsi
    .cfi_adjust_cfa_offset -8
    jmp     4b
    end_function hfn_counter_enter_entry

    function hfn_counter_exit_entry, align=6
    save    rax
    flags_to_ax
    save    rcx
    save    rdx
    save    rsi
    save    rdi
    save    r8
    save    r9
    pushq   %rax                        /* the flags */
    .cfi_adjust_cfa_offset 8
    pushq   %rax                        /* aligns the stack */
    .cfi_adjust_cfa_offset 8
    .equ    FRAME, 80
    find_state 5f, %edx, %rdx
    testl   $FLAGS_OF_LENGTHS, hfn_time + ENGINE_FLAGS(%rip)
    jnz     5f
    cmpl    $CLOCK_TSC, hfn_time + ENGINE_CLOCK(%rip)
    jne     5f
    movl    DEPTH(%rcx), %edx
    decl    %edx
    cmpl    $LOG_CAPACITY, %edx
    jae     5f
    find_place
    leaq    FRAME(%rsp), %rdi
    cmpq    %rdi, LOG_FRAME(%rsi)
    jne     5f
    movl    %edx, %r9d
    read_counter
    movl    FRAME + CALL_WORD + 4(%rsp), %edi /* the call's place */
    charge_place ENGINE_EXIT_COST, 6f
4:  movl    FRAME + CALLER(%rsp), %edi
    movq    $0, LOG_FRAME(%rsi)
    movl    %r9d, DEPTH(%rcx)           /* from then on the place is a handler's */
    movl    %r9d, STARTED(%rcx)
    movl    %edi, CURRENT_NODE(%rcx)
    movq    LAST_TICK(%rcx), %rax
    movl    FRAME + CALL_WORD(%rsp), %edi
    subq    HOOK_TICKS(%rcx), %rax
    andl    $CALL_SLOT, %edi
    subq    FRAME + START(%rsp), %rax
    js      3f
    shlq    $CELL_SHIFT, %rdi
    cmpq    CELLS + CELL_MAX(%rcx, %rdi), %rax
    ja      2f
3:  .cfi_remember_state
    popq    %rax
    .cfi_adjust_cfa_offset -8
    popq    %rax
    .cfi_adjust_cfa_offset -8
    restore r9
    restore r8
    restore rdi
    restore rsi
    restore rdx
    restore rcx
    flags_from_ax
    restore rax
    ret
    .cfi_restore_state
2:  movq    %rax, CELLS + CELL_MAX(%rcx, %rdi)
    jmp     3b
5:  leaq    FRAME(%rsp), %rdi
    call    hfn_counter_exit
    jmp     3b
6:  movq    %rcx, %rdi
    pushq   %rsi
    .cfi_adjust_cfa_offset 8
    pushq   %rcx                        /* aligns the stack */
    .cfi_adjust_cfa_offset 8
    movq    %rdx, %rsi
    call    hfn_counter_reset_tick
    popq    %rcx
    .cfi_adjust_cfa_offset -8
    popq    %rsi
    .cfi_adjust_cfa_offset -8
    jmp     4b
    end_function hfn_counter_exit_entry
