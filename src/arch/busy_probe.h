/* SPDX-License-Identifier: MIT */
/* void hfn_busy_probe(uint64_t **row, uint64_t rounds, uint64_t kind): calls 64 functions in turn, so many
 * rounds: kind 0 bare, 1 counted, 2 passed over by a sample (no call's turn comes).  Each is of a few
 * instructions that do not wait for each other: hooks cost here what they do where they compete for the
 * processor, and for its predictors.  One function called again and again hides half of that.  Behind the
 * 64 counters of a row stand 64 words of calls to be passed over.
 *
 * This is what the CPUs' two have in common: how functions and stubs lie.  A CPU's own says CALL and JUMP, gives an
 * entry of ENTRY_BYTES and a body that returns, and what a stub does: count (to 1 if there is no row), pass_over. */
#ifndef HFN_ARCH_BUSY_PROBE_H
#define HFN_ARCH_BUSY_PROBE_H

    .set    FUNCTIONS, 64
    .set    STRIDE, 48          /* of functions; of stubs 64 */
    .set    SKIPS, 8 * FUNCTIONS

.macro  each_called first
    .set    n, 0
    .rept   FUNCTIONS
    CALL    \first + n * STRIDE
    .set    n, n + 1
    .endr
.endm

/* FUNCTIONS whose entries jump to stubs. */
.macro  hooked stubs
    .set    n, 0
    .rept   FUNCTIONS
    .balign STRIDE / 3
    JUMP    \stubs + n * 64
    body
    .set    n, n + 1
    .endr
.endm

.macro  stubs_of functions, pass_over
    .set    n, 0
    .rept   FUNCTIONS
    .p2align 6
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
    hooked  count_stubs
    .p2align 6
passed:
    hooked  pass_stubs
    .p2align 6
count_stubs:
    stubs_of counted
    .p2align 6
pass_stubs:
    stubs_of passed, pass_over
.endm

#endif
