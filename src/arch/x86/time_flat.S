/* SPDX-License-Identifier: MIT */
/* HOT PATH: the two ends of a timed call of which only times are kept, for the calls that most are: the thread has
 * a row, the clock is rdtsc, nothing waits in suspended, the function is not open further out, the call that ends is the
 * log's innermost.  They are call_stack.c's enter and leave, which see to all other calls, store for store in the
 * same order, by hand for the few registers that they save: beside the clock, that is most of what can be saved
 * (docs/lab/timing-cost.md).  The stub's frame lies above the return address.  All registers are kept, and behind the
 * body the flags, which hand-written functions give back; at its entry none are live in what is timed.
 *
 * Offsets: hfn_time_engine, hfn_time_state, hfn_time_cell, hfn_open_call, hfn_time_frame; timing.c has them
 * checked. */
#include "arch/x86/asm.h"

    .equ    ENGINE_THREAD_AT, 0
    .equ    ENGINE_LOG_AT, 4
    .equ    ENGINE_CLOCK, 8
    .equ    CLOCK_TSC, 1
    .equ    LAST_TICK, 24
    .equ    DEPTH, 36
    .equ    CURRENT, 40
    .equ    SUSPENDED_COUNT, 44
    .equ    TIMED, 48
    .equ    FLOOR, 56
    .equ    CELLS, 192          /* by number; a slot's is one further */
    .equ    CELL_SHIFT, 6
    .equ    CELL, CELLS + 64
    .equ    TOTAL, 0
    .equ    SELF, 8
    .equ    TIMED_CALLS, 16
    .equ    MIN, 24
    .equ    MAX, 32
    .equ    OPEN, 44
    .equ    CALLEE_TIMED, 48
    .equ    WITHIN_TIMED, 56
    .equ    LOG_CAPACITY, 4096
    .equ    LOG_SHIFT, 5
    .equ    LOG_BYTES, 32
    .equ    LOG_FRAME, 0
    .equ    LOG_START, 8
    .equ    LOG_TIMED_BEFORE, 16
    .equ    LOG_HOW, 24
    .equ    START, 0
    .equ    CALLER, 8
    .equ    PLACE, 12
    .equ    HOW, 16
    .equ    SLOT, 32
    .equ    HOW_SLOT, 0xffffff
    .equ    PROBE_AT, 4096      /* of each 2^16 calls */

/* The frame, so far above rsp, to rdi, the thread's state to rcx, how far behind it the log lies to rsi; to
 * otherwise if there is no row, or another clock. */
.macro  find frame_at, otherwise
    load_row_displacement rax
    leaq    \frame_at(%rsp), %rdi
    movq    %THREAD:(%rax), %rcx
    testq   %rcx, %rcx
    jz      \otherwise
    movl    hfn_time + ENGINE_THREAD_AT(%rip), %eax
    movl    hfn_time + ENGINE_LOG_AT(%rip), %esi
    addq    %rax, %rcx
    cmpl    $CLOCK_TSC, hfn_time + ENGINE_CLOCK(%rip)
    jne     \otherwise
.endm

/* The clock to rax. */
.macro  read_clock
    rdtsc
    shlq    $32, %rdx
    orq     %rdx, %rax
.endm

    function hfn_time_enter_entry, align=6
    save    rax
    save    rcx
    save    rdx
    save    rsi
    save    rdi
    save    r8
    find    56, 5f
    movl    DEPTH(%rcx), %edx
    cmpl    $LOG_CAPACITY, %edx
    jae     5f
    cmpl    $0, SUSPENDED_COUNT(%rcx)
    jne     5f
    addq    %rcx, %rsi
    movl    %edx, %eax
    shlq    $LOG_SHIFT, %rax
    addq    %rax, %rsi                  /* its place in the log */
    movq    LOG_FRAME - LOG_BYTES(%rsi), %rax
    decq    %rax
    cmpq    %rdi, %rax                  /* lies_below */
    jb      5f
    movl    SLOT(%rdi), %r8d
    movl    %r8d, %eax
    shlq    $CELL_SHIFT, %rax
    cmpl    $0, CELL + OPEN(%rcx, %rax)
    jne     5f
    movl    %edx, PLACE(%rdi)
    incl    %edx
    movl    %edx, CELL + OPEN(%rcx, %rax)
    movl    CURRENT(%rcx), %eax
    movl    %eax, CALLER(%rdi)
    shlq    $CELL_SHIFT, %rax
    incq    CELLS + CALLEE_TIMED(%rcx, %rax)
    movq    %r8, HOW(%rdi)
    movq    TIMED(%rcx), %rax
    movl    %edx, DEPTH(%rcx)           /* until then a handler's calls may use the place */
    movq    %rdi, LOG_FRAME(%rsi)
    movq    %rax, LOG_TIMED_BEFORE(%rsi)
    movq    %r8, LOG_HOW(%rsi)
    incl    %r8d                        /* the cell's number */
    read_clock
    movq    %rax, LOG_START(%rsi)
    movq    %rax, %rdx
    subq    LAST_TICK(%rcx), %rdx
    js      6f
1:  movq    %rax, LAST_TICK(%rcx)
    movl    CALLER(%rdi), %esi
    shlq    $CELL_SHIFT, %rsi
    addq    %rdx, CELLS + SELF(%rcx, %rsi)
4:  movl    %r8d, CURRENT(%rcx)
    movq    %rax, START(%rdi)
3:  .cfi_remember_state
    restore r8
    restore rdi
    restore rsi
    restore rdx
    restore rcx
    restore rax
    ret
    .cfi_restore_state
5:  pushq   %rax                        /* aligns the stack */
    .cfi_adjust_cfa_offset 8
    call    hfn_time_enter
    popq    %rax
    .cfi_adjust_cfa_offset -8
    jmp     3b
6:  read_clock                          /* pass_time_again */
    movq    %rax, LOG_START(%rsi)
    movq    %rax, %rdx
    subq    LAST_TICK(%rcx), %rdx
    jns     1b
    movq    %rax, LAST_TICK(%rcx)
    pushq   %rax
    .cfi_adjust_cfa_offset 8
    call    hfn_time_went_back
    popq    %rax
    .cfi_adjust_cfa_offset -8
    jmp     4b
    end_function hfn_time_enter_entry

    function hfn_time_exit_entry, align=6
    save    rax
    flags_to_ax
    save    rcx
    save    rdx
    save    rsi
    save    rdi
    save    r8
    pushq   %rax
    .cfi_adjust_cfa_offset 8
    find    64, 5f
    movl    HOW(%rdi), %r8d
    cmpl    $HOW_SLOT, %r8d
    ja      5f
    movl    PLACE(%rdi), %edx
    leal    1(%rdx), %eax
    cmpl    %eax, DEPTH(%rcx)
    jne     5f
    cmpl    $LOG_CAPACITY, %edx
    jae     5f
    addq    %rcx, %rsi
    shlq    $LOG_SHIFT, %rdx
    addq    %rdx, %rsi                  /* its place in the log */
    cmpq    %rdi, LOG_FRAME(%rsi)
    jne     5f
    read_clock
    movq    LOG_TIMED_BEFORE(%rsi), %rdx
    movq    $0, LOG_FRAME(%rsi)
    movl    PLACE(%rdi), %esi
    movl    %esi, DEPTH(%rcx)           /* from then on the place is a handler's */
    shlq    $CELL_SHIFT, %r8
    addq    %rcx, %r8                   /* CELL(r8) is its cell */
    movq    %rax, %rsi
    subq    LAST_TICK(%rcx), %rsi
    js      6f
10: movq    %rax, LAST_TICK(%rcx)
    pushq   %rdx
    .cfi_adjust_cfa_offset 8
    movl    CURRENT(%rcx), %edx
    shlq    $CELL_SHIFT, %rdx
    addq    %rsi, CELLS + SELF(%rcx, %rdx)
    popq    %rdx
    .cfi_adjust_cfa_offset -8
4:  movl    CALLER(%rdi), %esi
    movl    %esi, CURRENT(%rcx)
    movq    START(%rdi), %rsi
    cmpq    FLOOR(%rcx), %rsi
    cmovbq  FLOOR(%rcx), %rsi
    subq    %rsi, %rax                  /* how long it took */
    js      7f
8:  movl    $0, CELL + OPEN(%r8)
    incq    CELL + TIMED_CALLS(%r8)
    movq    CELL + MIN(%r8), %rsi
    decq    %rsi
    cmpq    %rsi, %rax
    jb      9f
1:  cmpq    %rax, CELL + MAX(%r8)
    jb      2f
3:  addq    %rax, CELL + TOTAL(%r8)
    movq    TIMED(%rcx), %rsi
    incq    %rsi
    subq    %rsi, %rdx                  /* less by one than those before it, and those since */
    subq    %rdx, CELL + WITHIN_TIMED(%r8)
    incq    TIMED(%rcx)
    cmpw    $PROBE_AT, %si
    je      1f
0:  .cfi_remember_state
    popq    %rax
    .cfi_adjust_cfa_offset -8
    restore r8
    restore rdi
    restore rsi
    restore rdx
    restore rcx
    flags_from_ax
    restore rax
    ret
    .cfi_restore_state
2:  movq    %rax, CELL + MAX(%r8)
    jmp     3b
9:  leaq    1(%rax), %rsi
    movq    %rsi, CELL + MIN(%r8)
    jmp     1b
7:  xorl    %eax, %eax
    jmp     8b
6:  movq    %rdx, %rsi
    read_clock                          /* pass_time_again */
    movq    %rsi, %rdx
    movq    %rax, %rsi
    subq    LAST_TICK(%rcx), %rsi
    jns     10b
    movq    %rax, LAST_TICK(%rcx)
    call    hfn_time_went_back
    jmp     4b
5:  call    hfn_time_exit
    jmp     0b
1:  call    hfn_time_learn_cost
    jmp     0b
    end_function hfn_time_exit_entry
