/* SPDX-License-Identifier: MIT */
/* The pool of functions for methods, for Windows x64.  Odd functions jump to the method, which may
 * therefore have any arguments.  Even functions call it from a frame with HFN_POOL_STACK_WORDS
 * copied words of arguments, so the call can be timed.  A failure (HRESULT), and each result of a
 * method whose byte of hotfn_method_outputs is set, reaches the function whose address is in
 * hotfn_method_returned: its arguments are the number of the method, the result, and the address of
 * copied arguments. */
#define HFN_POOL_FUNCTION_BYTES 192
#include "arch/method_pool_numbers.h"

    .data
    .balign 64
    .globl  hotfn_method_targets
hotfn_method_targets:
targets:
    .skip   8 * HFN_POOL_FUNCTIONS

    .globl  hotfn_method_returned
hotfn_method_returned:
    .quad   0 /* set before a method has a function */

    .globl  hotfn_method_outputs
hotfn_method_outputs:
outputs:
    .skip   HFN_POOL_FUNCTIONS

    .section .rdata, "dr"
    .balign 8
    .globl  hotfn_method_functions
hotfn_method_functions:
    all_addresses

    .altmacro
#define HOME 32                                     /* bytes that a callee may use */
#define SAVED (HOME + 8 * HFN_POOL_STACK_WORDS)         /* what the method cannot change */
#define FRAME (SAVED + 8 * HFN_POOL_MAX_ARGUMENTS + 8)  /* aligns the stack */
#define ARGUMENTS (FRAME + 8 + HOME)                    /* those on the stack */
#define FRAME_RESULT HOME
#define FRAME_VECTOR (HOME + 16)

    /* Copy the arguments on the stack. */
.macro  copy_words to
    movups  ARGUMENTS(%rsp), %xmm4
    movups  %xmm4, \to(%rsp)
    movups  ARGUMENTS + 16(%rsp), %xmm4
    movups  %xmm4, \to + 16(%rsp)
    movups  ARGUMENTS + 32(%rsp), %xmm4
    movups  %xmm4, \to + 32(%rsp)
.endm

.macro  call_target number
    .seh_stackalloc FRAME
    .seh_endprologue
    movq    %rcx, SAVED(%rsp)
    movq    %rdx, SAVED + 8(%rsp)
    movq    %r8, SAVED + 16(%rsp)
    movq    %r9, SAVED + 24(%rsp)
    copy_words HOME
    callq   *targets + 8 * \number(%rip)
    testl   %eax, %eax
    js      1f
    cmpb    $0, outputs + \number(%rip)
    jne     1f
2:  addq    $FRAME, %rsp
    retq
    /* keep the registers in which a method of any type may have its result */
1:  movq    %rax, FRAME_RESULT(%rsp)
    movups  %xmm0, FRAME_VECTOR(%rsp)
    movl    $\number, %ecx
    movl    %eax, %edx
    copy_words SAVED + 32
    leaq    SAVED(%rsp), %r8
    callq   *hotfn_method_returned(%rip)
    movups  FRAME_VECTOR(%rsp), %xmm0
    movq    FRAME_RESULT(%rsp), %rax
    jmp     2b
.endm

.macro  define number
    .p2align 5, 0xcc
    .def    function_\number
    .scl    3
    .type   32
    .endef
    .seh_proc function_\number
function_\number:
    .if n - n / 2 * 2
    .seh_endprologue
    jmpq    *targets + 8 * \number(%rip)
    .else
    subq    $FRAME, %rsp
    call_target \number
    .endif
    .seh_endproc
    .org    functions + HFN_POOL_FUNCTION_BYTES * (\number + 1), 0xcc
.endm

    .text
    .p2align 5
functions:
    .set    n, 0
    .rept   HFN_POOL_FUNCTIONS
    define  %n
    .set    n, n + 1
    .endr

    .section .drectve, "yn"
    .ascii  " -export:hotfn_method_targets,data -export:hotfn_method_functions,data"
    .ascii  " -export:hotfn_method_returned,data -export:hotfn_method_outputs,data"
