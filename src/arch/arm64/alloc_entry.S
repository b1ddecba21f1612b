/* SPDX-License-Identifier: MIT */
/* HOT PATH: as time_entry.S, for a run that keeps memory. */
#include "arch/arm64/save.h"

    .text

.macro  entry name, target
    .globl  \name
    .hidden \name
    .type   \name, %function
    .p2align 4
\name:
    .cfi_startproc
    hint    #34                         /* bti c */
    save_all
    ldp     x1, x2, [sp, #16]           /* what was in x0, x1: arguments, or result */
    add     x0, sp, #FRAME_BYTES        /* the stub's frame */
    bl      \target
    restore_all
    ret
    .cfi_endproc
    .size   \name, . - \name
.endm

    entry hfn_alloc_enter_entry, hfn_alloc_enter
    entry hfn_alloc_exit_entry, hfn_alloc_exit

/* uintptr_t hfn_alloc_call(uintptr_t function, uintptr_t argument): the entries keep all general registers.
 * Vector registers are not kept: around malloc and free nobody may rely on them (AAPCS64, 6.1.2). */
    .globl  hfn_alloc_call
    .hidden hfn_alloc_call
    .type   hfn_alloc_call, %function
    .p2align 4
hfn_alloc_call:
    .cfi_startproc
    hint    #34                         /* bti c */
    mov     x16, x0
    mov     x0, x1
    br      x16                         /* as a call: BTYPE fits bti c */
    .cfi_endproc
    .size   hfn_alloc_call, . - hfn_alloc_call

    .section .note.GNU-stack, "", %progbits
