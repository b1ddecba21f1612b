/* SPDX-License-Identifier: MIT */
/* Timing is not there yet for this CPU (HFN_CAN_TIME): what counters/timing.c names traps. */
    .text

.macro  absent name
    .globl  \name
    .hidden \name
    .type   \name, @function
\name:
    ud2
    .size   \name, . - \name
.endm

    absent hfn_time_enter_entry
    absent hfn_time_enter_full_entry
    absent hfn_time_enter_sampled_entry
    absent hfn_time_exit_entry
    absent hfn_time_exit_full_entry
    absent hfn_time_probe
    absent hfn_count_probe
    absent hfn_alloc_enter_entry
    absent hfn_alloc_exit_entry
    absent hfn_alloc_call

    .section .note.GNU-stack, "", @progbits
