/* SPDX-License-Identifier: MIT */
/* HOT PATH: what a timing stub calls before and behind the body of a function.  The stub's frame
 * (hfn_time_frame) is at sp. */
#include "arch/arm64/asm.h"

.macro  entry name, target
    function \name
    save_all
    add     x0, sp, #FRAME_BYTES
    bl      \target
    restore_all
    ret
    end_function \name
.endm

/* Passes x0 too: the first argument, or the result. */
.macro  tick_entry name, target
    function \name
    save_all
    ldr     x1, [sp, #16]
    add     x0, sp, #FRAME_BYTES
    bl      \target
    restore_all
    ret
    end_function \name
.endm

    tick_entry hfn_tick_enter_entry, hfn_tick_enter
    tick_entry hfn_tick_exit_entry, hfn_tick_exit
    entry hfn_counter_enter_entry, hfn_counter_enter
    entry hfn_counter_exit_entry, hfn_counter_exit
    entry hfn_time_exit_sampled_entry, hfn_time_exit_sampled
    entry enter_sampled, hfn_time_enter_sampled

/* The copy of the return address behind the stub's frame gives the caller of a sampled call; it may
 * be signed (hfn_time_frame is 40 bytes long). */
    function hfn_time_enter_sampled_entry
    mov     x17, x30
    .cfi_register x30, x17
    ldr     x30, [sp, #40]
    hint    #7                          /* xpaclri */
    str     x30, [sp, #40]
    mov     x30, x17
    .cfi_restore x30
    b       enter_sampled
    end_function hfn_time_enter_sampled_entry

/* void hfn_time_probe(uint64_t slot, void (*enter)(void), void (*exit)(void), uint64_t calls):
 * what a stub does around a body that only returns, `calls` times, to measure its cost. */
    function hfn_time_probe
    stp     x29, x30, [sp, #-48]!
    .cfi_adjust_cfa_offset 48
    .cfi_rel_offset x29, 0
    .cfi_rel_offset x30, 8
    stp     x19, x20, [sp, #16]
    .cfi_rel_offset x19, 16
    .cfi_rel_offset x20, 24
    stp     x21, x22, [sp, #32]
    .cfi_rel_offset x21, 32
    .cfi_rel_offset x22, 40
    mov     x29, sp
    mov     x19, x0
    mov     x20, x1
    mov     x21, x2
    mov     x22, x3
1:  bl      call
    subs    x22, x22, #1
    b.ne    1b
    ldp     x21, x22, [sp, #32]
    ldp     x19, x20, [sp, #16]
    ldp     x29, x30, [sp], #48
    .cfi_adjust_cfa_offset -48
    .cfi_restore x19
    .cfi_restore x20
    .cfi_restore x21
    .cfi_restore x22
    .cfi_restore x29
    .cfi_restore x30
    ret
    end_function hfn_time_probe

    .type   call, %function
    .p2align 4
call:
    .cfi_startproc
    stp     x29, x30, [sp, #-16]!
    .cfi_adjust_cfa_offset 16
    .cfi_rel_offset x29, 0
    .cfi_rel_offset x30, 8
    sub     sp, sp, #48
    .cfi_adjust_cfa_offset 48
    add     x29, sp, #48
    stp     x19, x30, [sp, #32]
    cbz     x20, 2f
    blr     x20
    bl      3f
    blr     x21
2:  ldp     x29, x30, [sp, #48]
    .cfi_restore x29
    .cfi_restore x30
    add     sp, sp, #64
    .cfi_adjust_cfa_offset -64
3:  ret
    end_function call
