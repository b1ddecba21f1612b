/* SPDX-License-Identifier: MIT */
/* Memory is not followed yet on this CPU (HFN_CAN_FOLLOW_MEMORY): what counters/alloc.h names traps. */
    .text

.macro  absent name
    .globl  \name
    .hidden \name
    .type   \name, %function
\name:
    brk     #1
    .size   \name, . - \name
.endm

    absent hfn_alloc_enter_entry
    absent hfn_alloc_exit_entry
    absent hfn_alloc_call

    .section .note.GNU-stack, "", %progbits
