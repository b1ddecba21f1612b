/* SPDX-License-Identifier: MIT */
/* void hfn_busy_probe(uint64_t **row, uint64_t rounds, uint64_t kind): calls 64 functions in turn, so many
 * rounds: kind 0 bare, 1 counted, 2 passed over by a sample (no call's turn comes).  Each is of a few
 * instructions that do not wait for each other: hooks cost here what they do where they compete for the
 * processor, and for its predictors.  One function called again and again hides half of that.  Behind the
 * 64 counters of a row stand 64 words of calls to be passed over.  Stubs stand as far apart as those of a program
 * do, with what times a call in front of those that pass over: so they take as much of the caches (docs/design/budget.md
 * has what sqlite3 and lua pay beside it; with each stub in a line of its own it says too little).
 *
 * This is what the CPUs' two have in common: how functions and stubs lie.  A CPU's own says CALL and JUMP, gives an
 * entry of ENTRY_BYTES and a body that returns, and what a stub does: count (to 1 if there is no row), pass_over. */
#ifndef HFN_ARCH_BUSY_PROBE_H
#define HFN_ARCH_BUSY_PROBE_H

    .set    FUNCTIONS, 64
    .set    STRIDE, 48          /* of functions */
    .set    COUNT_STRIDE, 44    /* of stubs */
    .set    PASS_STRIDE, 128
    .set    PASS_FRONT, 36      /* of it in front of a stub that passes over */
    .set    SKIPS, 8 * FUNCTIONS

.macro  each_called first
    .set    n, 0
    .rept   FUNCTIONS
    CALL    \first + n * STRIDE
    .set    n, n + 1
    .endr
.endm

/* FUNCTIONS whose entries jump to stubs. */
.macro  hooked stubs, stride, front
    .set    n, 0
    .rept   FUNCTIONS
    .balign STRIDE / 3
    JUMP    \stubs + n * \stride + \front
    body
    .set    n, n + 1
    .endr
.endm

.macro  stubs_of functions, stride, front, pass_over
    .set    n, 0
    .rept   FUNCTIONS
    .org    \functions\()_stubs + n * \stride + \front
    count
    \pass_over
1:  entry
    JUMP    \functions + n * STRIDE + ENTRY_BYTES
    .set    n, n + 1
    .endr
.endm

.macro  functions_and_stubs
    .p2align 6
bare:
    .rept   FUNCTIONS
    .balign STRIDE / 3
    entry
    body
    .endr
    .p2align 6
counted:
    hooked  counted_stubs, COUNT_STRIDE, 0
    .p2align 6
passed:
    hooked  passed_stubs, PASS_STRIDE, PASS_FRONT
    .p2align 6
counted_stubs:
    stubs_of counted, COUNT_STRIDE, 0
    .p2align 6
passed_stubs:
    stubs_of passed, PASS_STRIDE, PASS_FRONT, pass_over
.endm

#endif
