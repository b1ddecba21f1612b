/* SPDX-License-Identifier: MIT */
/* The state of the process's counters for the slow path of a stub.  It is written before the first
 * hook is installed, and read by any thread at any time. */
#ifndef HFN_COUNTERS_THREAD_ROW_H
#define HFN_COUNTERS_THREAD_ROW_H

#include "live/rows.h"

#include <hotfn/lowlevel/counters.h>
#include <stdbool.h>
#include <stdint.h>

/* Rows of dead processes are kept apart as long as no more rows than these are in use. */
#define HFN_ROWS_KEPT_APART 256u
/* Rows that a new thread checks for a dead owner before it takes a new row. */
#define HFN_ROWS_TRIED 8u
/* A cell's tid while its row changes its owner. */
#define HFN_TID_BUSY UINT32_MAX

typedef struct hfn_row_state {
    hfn_cell_header *header; /* NULL: no set, calls are discarded     */
    hfn_thread_cell *cells;
    uint8_t *rows;
    uint8_t *discard; /* a row that is never read or unmapped      */
    uint64_t discard_bytes;
    uint32_t row_bytes;
    uint32_t thread_capacity;
    uint32_t slot_capacity;
    uint32_t pid;     /* of this process; stale in the child of a raw fork */
    uint32_t process; /* as in hfn_thread_cell                  */
    uint32_t pid_namespace;
    uint32_t next_try;   /* where the next search for a dead owner begins */
    uint32_t generation; /* number of sets so far                    */
} hfn_row_state;

extern hfn_row_state hfn_rows;

/* The thread's row, as stubs see it; 0 until its first hooked call. */
extern __thread uint8_t *hfn_thread_row __attribute__((tls_model("initial-exec")));

/* A row for the calling thread, or the discard row.  HOT PATH: see thread_row.c. */
uint8_t *hfn_thread_row_claim(void);

/* In assembly, one file a CPU. */
void hfn_thread_row_entry(void);           /* slow_path of counters.h                       */
int64_t hfn_thread_row_displacement(void); /* of hfn_thread_row from the thread pointer    */

#endif
