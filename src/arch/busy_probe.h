/* SPDX-License-Identifier: MIT */
/* void hfn_busy_probe(uint64_t **row, uint64_t rounds, uint64_t kind): measures what hooks cost in
 * busy code.  Calls 64 functions in turn, `rounds` times: kind 0 bare, 1 counted, 2 counted by a
 * sampling stub that skips every call.  The functions consist of a few independent instructions, so
 * hooks compete with them for the processor and its predictors; a single function called repeatedly
 * would hide half of the cost.  The row holds 64 counters followed by 64 words of calls to skip.
 * Stubs are as far apart as in a hooked program, and the space of a timing tail precedes each
 * sampling stub, so stubs occupy as much of the caches as those of a hooked program do
 * (docs/design/budget.md).
 *
 * This file defines the layout of functions and stubs.  A CPU's file defines CALL, JUMP,
 * ENTRY_BYTES and the macros entry, body (returns), count (branches to label 1 if there is no row)
 * and skip_call. */
#ifndef HFN_ARCH_BUSY_PROBE_H
#define HFN_ARCH_BUSY_PROBE_H

    .set    FUNCTIONS, 64
    .set    STRIDE, 48          /* of functions */
    .set    COUNT_STRIDE, 44    /* of stubs */
    .set    SKIP_STRIDE, 128
    .set    SKIP_FRONT, 36      /* space of a timing tail before a sampling stub */
    .set    SKIPS, 8 * FUNCTIONS

.macro  call_each first
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

.macro  stubs_of functions, stride, front, skip_call
    .set    n, 0
    .rept   FUNCTIONS
    .org    \functions\()_stubs + n * \stride + \front
    count
    \skip_call
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
skipped:
    hooked  skipped_stubs, SKIP_STRIDE, SKIP_FRONT
    .p2align 6
counted_stubs:
    stubs_of counted, COUNT_STRIDE, 0
    .p2align 6
skipped_stubs:
    stubs_of skipped, SKIP_STRIDE, SKIP_FRONT, skip_call
.endm

#endif
