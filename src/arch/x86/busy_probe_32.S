/* SPDX-License-Identifier: MIT */
/* hfn_busy_probe (arch/busy_probe.h) for i386. */
#include "arch/x86/asm.h"

#define CALL call
#define JUMP jmp
#define ENTRY_BYTES 5
#include "arch/busy_probe.h"

    .set    ARGUMENTS, 20       /* above the return address and four saved registers */

.macro  entry
    .byte   0x0f, 0x1f, 0x44, 0x00, 0x00 /* nopl 0(%eax, %eax, 1) */
.endm

/* Eight instructions, of which the last three depend on others.  As many bytes as for x86-64, with
 * the entry more than 2 / 3 of STRIDE. */
.macro  body
    addl    $1, %eax
    addl    $1000, %ecx
    addl    $1000, %edx
    addl    $1, %ebx
    addl    $1, %esi
    addl    $1, %eax
    addl    $1, %ecx
    addl    $1, %edx
    ret
.endm

/* As in a stub with a scratch register (emit_stub_32.c); the low words of counters do not wrap. */
.macro  count
    movl    (%edi), %eax
    testl   %eax, %eax
    jz      1f
    incl    8 * n(%eax)
    jz      1f
.endm

.macro  skip_call
    subl    $1, SKIPS + 4 * n(%eax)
    jb      1f
.endm

    function hfn_busy_probe, align=6
    save    ebp
    save    ebx
    save    esi
    save    edi
    movl    ARGUMENTS(%esp), %edi
    movl    ARGUMENTS + 4(%esp), %ebp   /* the low words of rounds and kind */
    cmpl    $1, ARGUMENTS + 12(%esp)
    je      2f
    ja      3f
1:  call_each bare
    decl    %ebp
    jnz     1b
    jmp     4f
2:  call_each counted
    decl    %ebp
    jnz     2b
    jmp     4f
3:  call_each skipped
    decl    %ebp
    jnz     3b
4:  restore edi
    restore esi
    restore ebx
    restore ebp
    ret
    functions_and_stubs
    end_function hfn_busy_probe
