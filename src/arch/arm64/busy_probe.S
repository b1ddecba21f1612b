/* SPDX-License-Identifier: MIT */
/* hfn_busy_probe (arch/busy_probe.h) for AArch64. */
#include "arch/arm64/asm.h"

#define CALL bl
#define JUMP b
#define ENTRY_BYTES 4
#include "arch/busy_probe.h"

.macro  entry
    nop
.endm

/* Eight independent instructions. */
.macro  body
    add     w3, w3, #1
    add     w4, w4, #1
    add     w5, w5, #1
    add     w6, w6, #1
    add     w7, w7, #1
    add     w8, w8, #1
    add     w10, w10, #1
    add     w11, w11, #1
    ret
.endm

.macro  count
    mrs     x16, tpidr_el0              /* as in a stub; here the row is an argument */
    ldr     x16, [x0]
    cbz     x16, 1f
    ldr     x17, [x16, #8 * n]
    add     x17, x17, #1
    str     x17, [x16, #8 * n]
.endm

.macro  skip_call
    movz    w17, #(SKIPS + 4 * n)
    movk    w17, #0, lsl #16
    add     x16, x16, x17
    ldr     w17, [x16]
    sub     w17, w17, #1
    str     w17, [x16]
    tbz     w17, #31, 1f
.endm

    function hfn_busy_probe, align=6
    mov     x9, x30
    .cfi_register x30, x9
    cmp     x2, #1
    b.eq    2f
    b.hi    3f
1:  call_each bare
    subs    x1, x1, #1
    b.ne    1b
    ret     x9
2:  call_each counted
    subs    x1, x1, #1
    b.ne    2b
    ret     x9
3:  call_each skipped
    subs    x1, x1, #1
    b.ne    3b
    ret     x9
    functions_and_stubs
    end_function hfn_busy_probe
