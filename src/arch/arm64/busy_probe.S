/* SPDX-License-Identifier: MIT */
/* void hfn_busy_probe(uint64_t **row, uint64_t rounds, uint64_t kind): as arch/x86/busy_probe.S has it.  Calls 64
 * functions in turn, so many rounds: kind 0 bare, 1 counted, 2 passed over by a sample. */
    .set    FUNCTIONS, 64
    .set    STRIDE, 48          /* of functions; of stubs 64 */
    .set    SKIPS, 8 * FUNCTIONS

.macro  each_called first
    .set    n, 0
    .rept   FUNCTIONS
    bl      \first + n * STRIDE
    .set    n, n + 1
    .endr
    subs    x1, x1, #1
.endm

/* Eight that do not wait for each other. */
.macro  body
    add     w3, w3, #1
    add     w4, w4, #1
    add     w5, w5, #1
    add     w6, w6, #1
    add     w7, w7, #1
    add     w8, w8, #1
    add     w10, w10, #1
    add     w11, w11, #1
    ret
.endm

/* FUNCTIONS whose entries branch to stubs. */
.macro  hooked stubs
    .set    n, 0
    .rept   FUNCTIONS
    .balign STRIDE / 3
    b       \stubs + n * 64
    body
    .set    n, n + 1
    .endr
.endm

.macro  count
    mrs     x16, tpidr_el0              /* what a stub reads first; here the row is an argument */
    ldr     x16, [x0]
    cbz     x16, 1f
    ldr     x17, [x16, #8 * n]
    add     x17, x17, #1
    str     x17, [x16, #8 * n]
.endm

    .text
    .globl  hfn_busy_probe
    .hidden hfn_busy_probe
    .type   hfn_busy_probe, %function
    .p2align 6
hfn_busy_probe:
    .cfi_startproc
    hint    #34                         /* bti c */
    mov     x9, x30
    .cfi_register x30, x9
    cmp     x2, #1
    b.eq    2f
    b.hi    3f
1:  each_called bare
    b.ne    1b
    ret     x9
2:  each_called counted
    b.ne    2b
    ret     x9
3:  each_called passed
    b.ne    3b
    ret     x9

    .p2align 6
bare:
    .rept   FUNCTIONS
    .balign STRIDE / 3
    nop
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
    count
1:  nop
    b       counted + n * STRIDE + 4
    .set    n, n + 1
    .endr
    .p2align 6
pass_stubs:
    .set    n, 0
    .rept   FUNCTIONS
    .p2align 6
    count
    movz    w17, #(SKIPS + 4 * n)
    movk    w17, #0, lsl #16
    add     x16, x16, x17
    ldr     w17, [x16]
    sub     w17, w17, #1
    str     w17, [x16]
    tbz     w17, #31, 1f
1:  nop
    b       passed + n * STRIDE + 4
    .set    n, n + 1
    .endr
    .cfi_endproc
    .size   hfn_busy_probe, . - hfn_busy_probe

    .section .note.GNU-stack, "", %progbits
