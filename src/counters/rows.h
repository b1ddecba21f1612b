/* SPDX-License-Identifier: MIT */
/* The process's set of rows: counters in memory of the caller, sums, and the system calls that
 * the set needs (row_process.c).  The system calls are raw, so that fork handlers may make them. */
#ifndef HFN_COUNTERS_ROWS_H
#define HFN_COUNTERS_ROWS_H

#include "live/rows.h"

#include <hotfn/lowlevel/counters.h>
#include <stdbool.h>

/* As hotfn_counters_create, but over memory that the caller keeps until the counters are destroyed;
 * all of it is zero at first use.  HOTFN_E_OPTION also if the memory cannot hold rows. */
hotfn_status hfn_counters_create_in(hotfn_counters **out, const hfn_row_memory *memory,
                                    const hotfn_env *env, hotfn_error *err);
/* The memory of the set, its own or the caller's. */
hfn_row_memory hfn_counters_get_memory(const hotfn_counters *counters);

/* sums[n] = sum of slot first + n over all rows; the slots are within capacity. */
void hfn_rows_sum(const hfn_row_memory *memory, uint32_t first, uint32_t count, uint64_t *sums);

/* Addresses for whole pages, or NULL; commit gives them zeroed memory before they are used. */
uint8_t *hfn_rows_reserve(uint64_t byte_count);
bool hfn_rows_commit(void *memory, uint64_t byte_count);
/* Both in one: zeroed whole pages, or NULL. */
uint8_t *hfn_rows_map(uint64_t byte_count);
void hfn_rows_unmap(void *memory, uint64_t byte_count);
/* Release the pages and keep the addresses mapped. */
void hfn_rows_empty(void *memory, uint64_t byte_count);
/* Let a forked child find these pages zeroed; false if the system cannot. */
bool hfn_rows_wipe_on_fork(uint8_t *memory, uint64_t byte_count);

/* Set pid, process and pid_namespace of hfn_rows for the calling process.  If they are set already,
 * they change only if is_new. */
void hfn_rows_identify_process(bool is_new);
/* exec.c.  begins: this process is about to execute another program; false: the exec has failed. */
void hfn_rows_mark_exec(bool begins);
/* Zero the row pointer of every thread of this process that owns a row of the set. */
void hfn_rows_forget_threads(void);

#endif
