/* SPDX-License-Identifier: MIT */
/* HOT PATH: where a stub goes when its thread has no row yet (counters.h, "slow_path's contract").  x17
 * says where to go on; nothing below sp is in use (AAPCS64 knows no red zone). */
#include "arch/arm64/asm.h"

    function hfn_thread_row_entry
    save_all
    bl      hfn_thread_row_first_call
    restore_all
    br      x17
    end_function hfn_thread_row_entry

/* int64_t hfn_thread_row_displacement(void) */
    function hfn_thread_row_displacement
    adrp    x0, :gottprel:hfn_thread_row
    ldr     x0, [x0, :gottprel_lo12:hfn_thread_row]
    ret
    end_function hfn_thread_row_displacement
