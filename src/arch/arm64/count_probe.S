/* SPDX-License-Identifier: MIT */
/* void hfn_count_probe(uint64_t **row, uint64_t calls, uint64_t counted): measures the cost of a
 * count. Calls a function that only returns; if counted is not 0, one whose entry branches to a
 * stub, like a hooked function. */
#include "arch/arm64/asm.h"

    function hfn_count_probe, align=6
    mov     x9, x30
    .cfi_register x30, x9
    cbnz    x2, 2f
1:  bl      bare
    subs    x1, x1, #1
    b.ne    1b
    ret     x9
2:  bl      hooked
    subs    x1, x1, #1
    b.ne    2b
    ret     x9
    .p2align 4
bare:
    nop
    ret
    .p2align 4
hooked:
    b       stub
back:
    ret
    .p2align 6
stub:
    mrs     x16, tpidr_el0              /* as in a stub; here the row is an argument */
    ldr     x16, [x0]
    cbz     x16, 3f
    ldr     x17, [x16]
    add     x17, x17, #1
    str     x17, [x16]
3:  nop
    b       back
    end_function hfn_count_probe
