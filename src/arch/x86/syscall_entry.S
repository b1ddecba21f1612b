/* SPDX-License-Identifier: MIT */
/* The agent's replacement of syscall (src/agent/tsc_disabled.c).  prctl and seccomp are
 * inspected; all other calls jump to the next syscall with unchanged registers and stack,
 * because the thread that clone creates returns from there too. */
#include "arch/x86/asm.h"

#include <asm/unistd.h>

    .globl  syscall
    .type   syscall, @function
    .p2align 4
syscall:
    .cfi_startproc
    ENDBR
#ifdef __x86_64__
    cmpl    $__NR_prctl, %edi
    je      1f
    cmpl    $__NR_seccomp, %edi
    je      1f
    jmp     *hfn_next_syscall(%rip)
#else
    cmpl    $__NR_prctl, 4(%esp)
    je      1f
    cmpl    $__NR_seccomp, 4(%esp)
    je      1f
    call    2f
3:  jmp     *hfn_next_syscall - 3b(%eax)
2:  movl    (%esp), %eax
    ret
#endif
1:  jmp     hfn_careful_syscall
    .cfi_endproc
    .size   syscall, . - syscall
