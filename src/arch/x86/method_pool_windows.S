/* SPDX-License-Identifier: MIT */
/* The pool of functions for methods, for Windows x64.  They jump to the method, which may therefore
 * have any arguments; their calls are counted, not timed. */
#include "arch/method_pool_numbers.h"

    .data
    .balign 64
    .globl  hotfn_method_targets
hotfn_method_targets:
targets:
    .skip   8 * HFN_POOL_FUNCTIONS

    .section .rdata, "dr"
    .balign 8
    .globl  hotfn_method_functions
hotfn_method_functions:
    all_addresses

    .altmacro
.macro  define number
    .p2align 5, 0xcc
    .def    function_\number
    .scl    3
    .type   32
    .endef
    .seh_proc function_\number
function_\number:
    .seh_endprologue
    jmpq    *targets + 8 * \number(%rip)
    .seh_endproc
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
