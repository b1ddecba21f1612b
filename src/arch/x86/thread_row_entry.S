/* SPDX-License-Identifier: MIT */
/* HOT PATH: the slow path of a stub whose thread has no row yet (counters.h, "slow_path's
 * contract").  All registers that the C function may change are saved here.  It is compiled with
 * -mgeneral-regs-only; only where it calls a library are vector registers saved too. */
#include "arch/x86/asm.h"

#ifdef _WIN32
/* Space for xsave's standard form up to AVX-512, whose last part ends at 2688 (Intel SDM vol. 1,
 * 13.5), and the word of the page that the kernel shares that has the enabled states
 * (KUSER_SHARED_DATA.XState.EnabledFeatures; 0 without xsave). */
#define VECTOR_BYTES 2752
#define STACK_ALIGNMENT 64
#define LEGACY_BYTES 512
#define ENABLED_STATES 0x7ffe03d8
#define COMPILED_STATES 0xe7

.macro  save_vectors
    subq    $VECTOR_BYTES, %rsp
    movl    $ENABLED_STATES, %eax
    movl    (%rax), %eax
    andl    $COMPILED_STATES, %eax
    jz      8f
    xorl    %edx, %edx
    .irp    word, 0, 8, 16, 24, 32, 40, 48, 56
    movq    %rdx, LEGACY_BYTES + \word(%rsp)
    .endr
    xsave64 (%rsp)
    jmp     9f
8:  fxsave64 (%rsp)
9:
.endm
.macro  restore_vectors
    movl    $ENABLED_STATES, %eax
    movl    (%rax), %eax
    andl    $COMPILED_STATES, %eax
    jz      8f
    xorl    %edx, %edx
    xrstor64 (%rsp)
    jmp     9f
8:  fxrstor64 (%rsp)
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
    save    rcx
    pushfq
    .cfi_adjust_cfa_offset 8
    cld
    save    rax
    save    rdx
    save    rsi
    save    rdi
    save    r8
    save    r9
    save    r10
    save    r11
    save    rbp
    movq    %rsp, %rbp
    .cfi_def_cfa_register rbp
    andq    $-STACK_ALIGNMENT, %rsp
    save_vectors
    call    hfn_thread_row_first_call
    restore_vectors
    movq    %rbp, %rsp
    .cfi_def_cfa_register rsp
    restore rbp
    restore r11
    restore r10
    restore r9
    restore r8
    restore rdi
    restore rsi
    restore rdx
    restore rax
    popfq
    .cfi_adjust_cfa_offset -8
    restore rcx
    ret
    end_function hfn_thread_row_entry

#ifdef HFN_CORE
/* uint64_t hfn_core_thread_pointer(void): the first word of a thread's descriptor is its own
 * address (System V x86-64 psABI, ELF TLS ABI: "the thread pointer"). */
    function hfn_core_thread_pointer
    movq    %fs:0, %rax
    ret
    end_function hfn_core_thread_pointer

/* void hfn_core_set_gs_base(uint64_t base): arch_prctl(ARCH_SET_GS). */
    function hfn_core_set_gs_base
    movq    %rdi, %rsi
    movl    $0x1001, %edi
    movl    $158, %eax
    syscall
    ret
    end_function hfn_core_set_gs_base
#else
/* int64_t hfn_thread_row_displacement(void) */
    function hfn_thread_row_displacement
    load_row_displacement rax
    ret
    end_function hfn_thread_row_displacement
#endif
