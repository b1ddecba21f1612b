/* SPDX-License-Identifier: MIT */
/* What rows.c and around_fork.c need done in terms of the system, in linux_process.c: memory of their
 * own, who this process is, its threads' row pointers.  And a sum over any set's memory. */
#ifndef HFN_COUNTERS_ROWS_H
#define HFN_COUNTERS_ROWS_H

#include <hotfn/lowlevel/counters.h>
#include <stdbool.h>

/* Zeroed address space of whole pages; NULL if there is none.  No libc call: also safe in fork
 * handlers. */
uint8_t *hfn_rows_map(uint64_t byte_count);
void hfn_rows_unmap(void *memory, uint64_t byte_count);
void hfn_rows_empty(void *memory, uint64_t byte_count); /* addresses stay, pages go */
/* From now on a forked child finds these pages zeroed; false if the system cannot. */
bool hfn_rows_wipe_on_fork(uint8_t *memory, uint64_t byte_count);

/* Fill in hfn_rows' pid, process and pid_namespace for the calling process; nothing is changed if
 * they are known already, unless it is a new process. */
void hfn_rows_name_process(bool is_new);
/* Zero the row pointer of every thread of this process that has a row of the set: its memory goes. */
void hfn_rows_forget_threads(void);

/* rows.c.  sums[n] = slot first + n of all rows; the slots are within capacity. */
void hfn_rows_sum(const hotfn_counter_memory *memory, uint32_t first, uint32_t count,
                  uint64_t *sums);

#endif
