/* SPDX-License-Identifier: MIT */
/* HOT PATH: what a timing stub calls before and behind the body of a function; i386.  The C
 * functions are compiled for general registers alone; those that a called function may change are
 * saved here, and the flags: hand-written functions receive and return flags, or leave them
 * unchanged. */
#include "arch/x86/asm_32.h"

    enter   hfn_tick_enter_entry, C(hfn_tick_enter)
    enter   hfn_counter_enter_entry, C(hfn_counter_enter)
    enter   hfn_time_enter_sampled_entry, C(hfn_time_enter_sampled)
    leave_  hfn_tick_exit_entry, C(hfn_tick_exit)
    leave_  hfn_counter_exit_entry, C(hfn_counter_exit)
    leave_  hfn_time_exit_sampled_entry, C(hfn_time_exit_sampled)

/* void hfn_time_probe(uint64_t slot, void (*enter)(void), void (*exit)(void), uint64_t calls):
 * what a stub does around a body that only returns, `calls` times, to measure its cost. */
    function hfn_time_probe
    save    ebx
    save    esi
    save    edi
    save    ebp
    movl    20(%esp), %ebp
    movl    28(%esp), %esi
    movl    32(%esp), %edi
    movl    36(%esp), %ebx
1:  call    2f
    decl    %ebx
    jnz     1b
    restore ebp
    restore edi
    restore esi
    restore ebx
    ret
2:  .cfi_adjust_cfa_offset 20
    pushl   %ebp
    .cfi_adjust_cfa_offset 4
    leal    -(FRAME_BYTES - 4 + ROOM_BYTES)(%esp), %esp
    .cfi_adjust_cfa_offset FRAME_BYTES - 4 + ROOM_BYTES
    movl    $0, (%esp)
    testl   %esi, %esi
    jz      3f
    call    *%esi
    call    4f
    leal    ROOM_BYTES(%esp), %esp
    .cfi_adjust_cfa_offset -ROOM_BYTES
    call    *%edi
    leal    FRAME_BYTES(%esp), %esp
    .cfi_adjust_cfa_offset -FRAME_BYTES
    ret
3:  .cfi_adjust_cfa_offset FRAME_BYTES + ROOM_BYTES
    leal    FRAME_BYTES + ROOM_BYTES(%esp), %esp
    .cfi_adjust_cfa_offset -(FRAME_BYTES + ROOM_BYTES)
4:  ret
    end_function hfn_time_probe
