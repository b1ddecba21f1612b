/* SPDX-License-Identifier: MIT */
/* HOT PATH: the slow path of a stub whose thread has no row yet (counters.h, "slow_path's
 * contract").  x17 holds the address at which the stub continues; AAPCS64 has no red zone below
 * sp. */
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
