/* SPDX-License-Identifier: MIT */
/* HOT PATH: the slow path of an i386 stub whose thread has no row yet (counters.h, "slow_path's
 * contract"). All registers that the C function may change are saved here.  It is compiled with
 * -mgeneral-regs-only; only where it calls a library are vector registers saved too. */
#include "arch/x86/asm.h"

#ifdef _WIN32
/* As in thread_row_entry.S: space for xsave's standard form, and where the system has the enabled
 * states (KUSER_SHARED_DATA.XState.EnabledFeatures; 0 without xsave). */
#define VECTOR_BYTES 2752
#define STACK_ALIGNMENT 64
#define LEGACY_BYTES 512
#define ENABLED_STATES 0x7ffe03d8
#define COMPILED_STATES 0xe7

.macro  save_vectors
    subl    $VECTOR_BYTES, %esp
    movl    ENABLED_STATES, %eax
    andl    $COMPILED_STATES, %eax
    jz      8f
    xorl    %edx, %edx
    .irp    word, 0, 4, 8, 12, 16, 20, 24, 28, 32, 36, 40, 44, 48, 52, 56, 60
    movl    %edx, LEGACY_BYTES + \word(%esp)
    .endr
    xsave   (%esp)
    jmp     9f
8:  fxsave  (%esp)
9:
.endm
.macro  restore_vectors
    movl    ENABLED_STATES, %eax
    andl    $COMPILED_STATES, %eax
    jz      8f
    xorl    %edx, %edx
    xrstor  (%esp)
    jmp     9f
8:  fxrstor (%esp)
9:
.endm
#else
#define STACK_ALIGNMENT 16
.macro  save_vectors
.endm
.macro  restore_vectors
.endm
#endif

    function hfn_thread_row_entry
    pushfl
    .cfi_adjust_cfa_offset 4
    cld
    save    eax
    save    ecx
    save    edx
    save    ebp
    movl    %esp, %ebp
    .cfi_def_cfa_register ebp
    andl    $-STACK_ALIGNMENT, %esp
    save_vectors
    call    C(hfn_thread_row_first_call)
    restore_vectors
    movl    %ebp, %esp
    .cfi_def_cfa_register esp
    restore ebp
    restore edx
    restore ecx
    restore eax
    popfl
    .cfi_adjust_cfa_offset -4
    ret
    end_function hfn_thread_row_entry

/* int64_t hfn_thread_row_displacement(void) */
    function hfn_thread_row_displacement
#ifdef _WIN32
    movl    C(hfn_os_row_word_at), %eax
    cltd
#else
    call    1f
    .cfi_adjust_cfa_offset 4
1:  popl    %eax
    .cfi_adjust_cfa_offset -4
    addl    $_GLOBAL_OFFSET_TABLE_ + (. - 1b), %eax
    movl    hfn_thread_row@gotntpoff(%eax), %eax
    cltd
#endif
    ret
    end_function hfn_thread_row_displacement
