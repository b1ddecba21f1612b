/* SPDX-License-Identifier: MIT */
/* The state of the counters that the slow path of a stub reads.  It is written before the first
 * hook is installed; any thread reads it at any time. */
#ifndef HFN_COUNTERS_THREAD_ROW_H
#define HFN_COUNTERS_THREAD_ROW_H

#include "base/compiler.h"
#include "live/rows.h"
#include "os/hot_path.h"
#include "os/row_word.h"

#include <hotfn/lowlevel/counters.h>
#include <stdbool.h>
#include <stdint.h>

/* Rows of ended processes are reused only if more than this number of rows are in use, so that
 * counts of short-lived processes stay separate. */
#define HFN_ROWS_BEFORE_REUSE 256u
/* Rows that a new thread checks for an ended owner before it begins a new row. */
#define HFN_ROWS_TRIED 8u
/* The tid of a cell while its owner changes. */
#define HFN_TID_BUSY UINT32_MAX

typedef struct hfn_row_state {
    hfn_cell_header *header; /* NULL: no counters exist */
    hfn_thread_cell *cells;
    uint8_t *rows;
    uint8_t *shared;  /* the row of hfn_thread_row_count_shared; NULL: not begun */
    uint8_t *discard; /* a row whose counts are never read; never unmapped */
    uint64_t discard_bytes;
    uint32_t row_bytes;
    uint32_t thread_capacity;
    uint32_t slot_capacity;
    uint32_t pid;     /* of this process; in the child of a raw fork, still of the parent */
    uint32_t process; /* as in hfn_thread_cell                 */
    uint32_t pid_namespace;
    uint32_t next_try;   /* where the next search for an ended owner begins */
    uint32_t generation; /* sets created or destroyed so far */
    uint32_t forbidden;  /* HFN_CALLS_*: what the process must not call any more; atomic */
    uint32_t claimers;   /* threads that claim a row now, where a claim calls a library; atomic */
} hfn_row_state;

extern hfn_row_state hfn_rows;

static inline bool hfn_rows_may_call(uint32_t groups)
{
    return !(__atomic_load_n(&hfn_rows.forbidden, __ATOMIC_RELAXED) & groups);
}

/* A row for the calling thread, or the discard row.  HOT PATH: see thread_row.c. */
uint8_t *hfn_thread_row_claim(void);

/* Count a call in the slot at this offset of a row that all threads share, by an atomic addition:
 * for processes whose threads may have no row pointer.  HOT PATH: see thread_row.c. */
void hfn_thread_row_count_shared(void *slot_bytes);

/* core/core.h: the address of the word in which the core keeps the calling thread's row pointer; 0:
 * the gs base leads to the row instead. */
uint64_t hfn_core_word_address(void);
/* core/core.h: let the gs base lead to the row with this index, or to the discard row. */
void hfn_core_set_gs_row(uint64_t index);

/* In assembly, one file for each CPU. */
void hfn_thread_row_entry(void);           /* slow_path of counters.h                       */
int64_t hfn_thread_row_displacement(void); /* of hfn_thread_row from the thread pointer   */

#endif
