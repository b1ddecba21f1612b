/* SPDX-License-Identifier: MIT */
/* HOT PATH: where a stub goes when its thread has no row yet (counters.h, "slow_path's contract").  x17
 * says where to go on; nothing below sp is in use (AAPCS64 knows no red zone).  Everything that the C
 * function may change is saved here: it is compiled with -mgeneral-regs-only, so vector registers need
 * no room. */
    .text

#define FRAME_BYTES 192

    .globl  hfn_thread_row_entry
    .hidden hfn_thread_row_entry
    .type   hfn_thread_row_entry, %function
    .p2align 4
hfn_thread_row_entry:
    .cfi_startproc
    hint    #34                         /* bti c */
    sub     sp, sp, #FRAME_BYTES
    .cfi_adjust_cfa_offset FRAME_BYTES
    stp     x29, x30, [sp]
    .cfi_rel_offset x29, 0
    .cfi_rel_offset x30, 8
    stp     x0, x1, [sp, #16]
    stp     x2, x3, [sp, #32]
    stp     x4, x5, [sp, #48]
    stp     x6, x7, [sp, #64]
    stp     x8, x9, [sp, #80]
    stp     x10, x11, [sp, #96]
    stp     x12, x13, [sp, #112]
    stp     x14, x15, [sp, #128]
    stp     x17, x18, [sp, #144]
    mrs     x0, nzcv
    str     x0, [sp, #160]
    mov     x29, sp
    bl      hfn_thread_row_first_call
    ldr     x0, [sp, #160]
    msr     nzcv, x0
    ldp     x17, x18, [sp, #144]
    ldp     x14, x15, [sp, #128]
    ldp     x12, x13, [sp, #112]
    ldp     x10, x11, [sp, #96]
    ldp     x8, x9, [sp, #80]
    ldp     x6, x7, [sp, #64]
    ldp     x4, x5, [sp, #48]
    ldp     x2, x3, [sp, #32]
    ldp     x0, x1, [sp, #16]
    ldp     x29, x30, [sp]
    .cfi_restore x29
    .cfi_restore x30
    add     sp, sp, #FRAME_BYTES
    .cfi_adjust_cfa_offset -FRAME_BYTES
    br      x17
    .cfi_endproc
    .size   hfn_thread_row_entry, . - hfn_thread_row_entry

/* int64_t hfn_thread_row_displacement(void) */
    .globl  hfn_thread_row_displacement
    .hidden hfn_thread_row_displacement
    .type   hfn_thread_row_displacement, %function
    .p2align 4
hfn_thread_row_displacement:
    .cfi_startproc
    hint    #34                         /* bti c */
    adrp    x0, :gottprel:hfn_thread_row
    ldr     x0, [x0, :gottprel_lo12:hfn_thread_row]
    ret
    .cfi_endproc
    .size   hfn_thread_row_displacement, . - hfn_thread_row_displacement

    .section .note.GNU-stack, "", %progbits
