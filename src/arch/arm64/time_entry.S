/* SPDX-License-Identifier: MIT */
/* HOT PATH: where a timing stub calls, before and behind the body of a function.  The stub's frame
 * (hfn_time_frame) is what sp points to.  The C functions are compiled for general registers alone; all
 * of those that a function may change are kept here, and the flags. */
    .text

#define FRAME_BYTES 176

.macro  entry name, target
    .globl  \name
    .hidden \name
    .type   \name, %function
    .p2align 4
\name:
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
    stp     x16, x17, [sp, #144]
    mrs     x0, nzcv
    stp     x18, x0, [sp, #160]
    mov     x29, sp
    add     x0, sp, #FRAME_BYTES
    bl      \target
    ldp     x18, x0, [sp, #160]
    msr     nzcv, x0
    ldp     x16, x17, [sp, #144]
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
    ret
    .cfi_endproc
    .size   \name, . - \name
.endm

    entry hfn_time_enter_entry, hfn_time_enter
    entry hfn_time_enter_full_entry, hfn_time_enter_full
    entry hfn_time_exit_entry, hfn_time_exit
    entry hfn_time_exit_full_entry, hfn_time_exit_full
    entry enter_sampled, hfn_time_enter_sampled

/* A sample's caller is told by the copy of the return address behind the stub's frame, which may be
 * signed (hfn_time_frame is 40 bytes long). */
    .globl  hfn_time_enter_sampled_entry
    .hidden hfn_time_enter_sampled_entry
    .type   hfn_time_enter_sampled_entry, %function
    .p2align 4
hfn_time_enter_sampled_entry:
    .cfi_startproc
    hint    #34                         /* bti c */
    mov     x17, x30
    .cfi_register x30, x17
    ldr     x30, [sp, #40]
    hint    #7                          /* xpaclri */
    str     x30, [sp, #40]
    mov     x30, x17
    .cfi_restore x30
    b       enter_sampled
    .cfi_endproc
    .size   hfn_time_enter_sampled_entry, . - hfn_time_enter_sampled_entry

/* void hfn_time_probe(uint64_t slot, void (*enter)(void), void (*exit)(void), uint64_t calls):
 * what a stub does around a body that only returns, again and again, to learn what it costs. */
    .globl  hfn_time_probe
    .hidden hfn_time_probe
    .type   hfn_time_probe, %function
    .p2align 4
hfn_time_probe:
    .cfi_startproc
    hint    #34                         /* bti c */
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
    .cfi_endproc
    .size   hfn_time_probe, . - hfn_time_probe

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
    .cfi_endproc
    .size   call, . - call

    .section .note.GNU-stack, "", %progbits
