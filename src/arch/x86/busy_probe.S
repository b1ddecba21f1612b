/* SPDX-License-Identifier: MIT */
/* hfn_busy_probe (arch/busy_probe.h) for x86-64. */
#include "arch/x86/asm.h"

#define CALL call
#define JUMP jmp
#define ENTRY_BYTES 5
#include "arch/busy_probe.h"

.macro  entry
    nopl    0(%rax, %rax, 1)
.endm

/* Eight instructions, of which only the last depends on another one. */
.macro  body
    addl    $1, %eax
    addl    $1, %ecx
    addl    $1, %edx
    addl    $1, %r8d
    addl    $1, %r9d
    addl    $1, %r10d
    addl    $1, %r11d
    addl    $1, %eax
    ret
.endm

.macro  count
    movq    (%rdi), %rax
    testq   %rax, %rax
    jz      1f
    incq    8 * n(%rax)
.endm

.macro  skip_call
    subl    $1, SKIPS + 4 * n(%rax)
    jb      1f
.endm

    function hfn_busy_probe, align=6
    cmpq    $1, %rdx
    je      2f
    ja      3f
1:  call_each bare
    decq    %rsi
    jnz     1b
    ret
2:  call_each counted
    decq    %rsi
    jnz     2b
    ret
3:  call_each skipped
    decq    %rsi
    jnz     3b
    ret
    functions_and_stubs
    end_function hfn_busy_probe
