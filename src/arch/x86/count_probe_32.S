/* SPDX-License-Identifier: MIT */
/* void hfn_count_probe(uint64_t **row, uint64_t calls, uint64_t counted), i386: measures the
 * cost of a count. Calls a function that only returns; if counted is not 0, one whose entry
 * jumps to a stub, like a hooked function. */
#include "arch/x86/asm.h"

    function hfn_count_probe, align=6
    movl    4(%esp), %edx
    movl    8(%esp), %ecx
    cmpl    $0, 16(%esp)
    jne     2f
1:  call    bare
    decl    %ecx
    jnz     1b
    ret
2:  call    hooked
    decl    %ecx
    jnz     2b
    ret
    .p2align 4
bare:
    nopl    0(%eax, %eax, 1)
    ret
    .p2align 4
hooked:
    jmp     stub
back:
    ret
    .p2align 6
3:  incl    4(%eax)
    jmp     4f
stub:
    pushl   %eax
    .cfi_adjust_cfa_offset 4
    movl    (%edx), %eax
    testl   %eax, %eax
    jz      4f
    incl    (%eax)
    jz      3b
4:  popl    %eax
    .cfi_adjust_cfa_offset -4
    nopl    0(%eax, %eax, 1)
    jmp     back
    end_function hfn_count_probe
