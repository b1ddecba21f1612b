/* SPDX-License-Identifier: MIT */
/* HOT PATH: entry and exit probes like those of time_entry.S, for runs that record allocations. */
#include "arch/arm64/asm.h"

.macro  entry name, target
    function \name
    save_all
    ldp     x1, x2, [sp, #16]           /* saved x0, x1: arguments or result */
    add     x0, sp, #FRAME_BYTES        /* the stub's frame */
    bl      \target
    restore_all
    ret
    end_function \name
.endm

    entry hfn_alloc_enter_entry, hfn_alloc_enter
    entry hfn_alloc_exit_entry, hfn_alloc_exit

/* uintptr_t hfn_alloc_call(uintptr_t function, uintptr_t argument): calls a C function.  The
 * probes save all general registers; vector registers are not saved, because callers of malloc
 * and free may not rely on them (AAPCS64, 6.1.2). */
    function hfn_alloc_call
    mov     x16, x0
    mov     x0, x1
    br      x16                         /* br x16 is compatible with bti c */
    end_function hfn_alloc_call
