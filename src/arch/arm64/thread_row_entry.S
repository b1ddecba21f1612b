/* SPDX-License-Identifier: MIT */
/* HOT PATH: where a stub goes when its thread has no row yet (counters.h, "slow_path's contract").  x17
 * says where to go on; nothing below sp is in use (AAPCS64 knows no red zone). */
#include "arch/arm64/save.h"

    .text

    .globl  hfn_thread_row_entry
    .hidden hfn_thread_row_entry
    .type   hfn_thread_row_entry, %function
    .p2align 4
hfn_thread_row_entry:
    .cfi_startproc
    hint    #34                         /* bti c */
    save_all
    bl      hfn_thread_row_first_call
    restore_all
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
