/* SPDX-License-Identifier: MIT */
/* void hfn_busy_probe(uint64_t **row, uint64_t rounds, uint64_t kind): measures what hooks cost in
 * busy code.  Calls 64 functions in turn, `rounds` times: kind 0 bare, 1 counted, 2 counted by a
 * sampling stub that skips every call.  The functions consist of a few independent instructions, so
 * hooks compete with them for the processor and its predictors; a single function called repeatedly
 * would hide half of the cost.  The row holds 64 counters followed by 64 words of calls to skip.
 * Stubs are as far apart as those of a program, and the skipping ones follow the space of a timing
 * tail, so they occupy as much of the caches (docs/design/budget.md).
 *
 * This file has the layout of functions and stubs.  A CPU's file defines CALL, JUMP, ENTRY_BYTES
 * and the macros entry, body (returns), count (goes to 1 if there is no row) and pass_over. */
#ifndef HFN_ARCH_BUSY_PROBE_H
#define HFN_ARCH_BUSY_PROBE_H

    .set    FUNCTIONS, 64
    .set    STRIDE, 48          /* of functions */
    .set    COUNT_STRIDE, 44    /* of stubs */
    .set    PASS_STRIDE, 128
    .set    PASS_FRONT, 36      /* space of a timing tail before a skipping stub */
    .set    SKIPS, 8 * FUNCTIONS

.macro  each_called first
    .set    n, 0
    .rept   FUNCTIONS
    CALL    \first + n * STRIDE
    .set    n, n + 1
    .endr
.endm

/* FUNCTIONS functions whose entries jump to stubs. */
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
