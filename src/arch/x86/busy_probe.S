/* SPDX-License-Identifier: MIT */
/* void hfn_busy_probe(uint64_t **row, uint64_t rounds, uint64_t kind): calls 64 functions in turn, so many
 * rounds: kind 0 bare, 1 counted, 2 passed over by a sample (no call's turn comes).  Each is of a few
 * instructions that do not wait for each other: hooks cost here what they do where they compete for the
 * processor, and for its predictors.  One function called again and again hides half of that.  Behind the
 * 64 counters of a row stand 64 words of calls to be passed over. */
    .set    FUNCTIONS, 64
    .set    STRIDE, 48          /* of functions; of stubs 64 */
    .set    SKIPS, 8 * FUNCTIONS

.macro  each_called first
    .set    n, 0
    .rept   FUNCTIONS
    call    \first + n * STRIDE
    .set    n, n + 1
    .endr
.endm

/* Eight that do not wait for each other. */
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

/* FUNCTIONS whose entries jump to stubs. */
.macro  hooked stubs
    .set    n, 0
    .rept   FUNCTIONS
    .balign STRIDE / 3
    jmp     \stubs + n * 64
    body
    .set    n, n + 1
    .endr
.endm

    .text
    .globl  hfn_busy_probe
    .hidden hfn_busy_probe
    .type   hfn_busy_probe, @function
    .p2align 6
hfn_busy_probe:
    .cfi_startproc
    endbr64
    cmpq    $1, %rdx
    je      2f
    ja      3f
1:  each_called bare
    decq    %rsi
    jnz     1b
    ret
2:  each_called counted
    decq    %rsi
    jnz     2b
    ret
3:  each_called passed
    decq    %rsi
    jnz     3b
    ret

    .p2align 6
bare:
    .rept   FUNCTIONS
    .balign STRIDE / 3
    nopl    0(%rax, %rax, 1)
    body
    .endr
    .p2align 6
counted:
    hooked  count_stubs
    .p2align 6
passed:
    hooked  pass_stubs

    .p2align 6
count_stubs:
    .set    n, 0
    .rept   FUNCTIONS
    .p2align 6
    movq    (%rdi), %rax
    testq   %rax, %rax
    jz      1f
    incq    8 * n(%rax)
1:  nopl    0(%rax, %rax, 1)
    jmp     counted + n * STRIDE + 5
    .set    n, n + 1
    .endr
    .p2align 6
pass_stubs:
    .set    n, 0
    .rept   FUNCTIONS
    .p2align 6
    movq    (%rdi), %rax
    testq   %rax, %rax
    jz      1f
    incq    8 * n(%rax)
    subl    $1, SKIPS + 4 * n(%rax)
    jb      1f
1:  nopl    0(%rax, %rax, 1)
    jmp     passed + n * STRIDE + 5
    .set    n, n + 1
    .endr
    .cfi_endproc
    .size   hfn_busy_probe, . - hfn_busy_probe

    .section .note.GNU-stack, "", @progbits
