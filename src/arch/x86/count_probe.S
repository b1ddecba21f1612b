/* SPDX-License-Identifier: MIT */
/* void hfn_count_probe(uint64_t **row, uint64_t calls, uint64_t counted): measures the cost of a
 * count. Calls a function that only returns; if counted is not 0, one whose entry jumps to a
 * stub, like a hooked function. */
#include "arch/x86/asm.h"

    function hfn_count_probe, align=6
    testq   %rdx, %rdx
    jnz     2f
1:  call    bare
    decq    %rsi
    jnz     1b
    ret
2:  call    hooked
    decq    %rsi
    jnz     2b
    ret
    .p2align 4
bare:
    nopl    0(%rax, %rax, 1)
    ret
    .p2align 4
hooked:
    jmp     stub
back:
    ret
    .p2align 6
stub:
    movq    (%rdi), %rax
    testq   %rax, %rax
    jz      3f
    incq    (%rax)
3:  nopl    0(%rax, %rax, 1)
    jmp     back
    end_function hfn_count_probe
