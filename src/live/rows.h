/* SPDX-License-Identifier: MIT */
/* Memory layout of a set of rows: a header, a cell that describes each row, and the rows.  A row is
 * an array of 64-bit slots with one writer, the thread that owns it. */
#ifndef HFN_LIVE_ROWS_H
#define HFN_LIVE_ROWS_H

#include <stdint.h>

/* The owner of a row: 64 bytes, in memory that other processes may share.  When a thread has ended,
 * a later thread takes its row over and keeps adding to the counts in it. */
typedef struct hfn_thread_cell {
    uint32_t tid;          /* 0: never used; UINT32_MAX: the owner is being changed      */
    uint32_t thread_count; /* threads that have owned this row so far                    */
    uint32_t pid;
    uint32_t process;       /* random number; differs between processes that had one pid  */
    uint32_t pid_namespace; /* inode number, 0: unknown; pids are unique only within it   */
    uint32_t process_count; /* processes that have owned this row so far                  */
    uint64_t start_ns;      /* CLOCK_REALTIME at the first owner's first hooked call      */
    char name[16];          /* of the latest owner, when it was read last                 */
    uint64_t row_variable;  /* address of the owner's row pointer in its process          */
    uint64_t cpu_ns;        /* processor time of all owners, when it was read last; 0: unknown */
} hfn_thread_cell;

/* A bit of row_variable, which is even: the owner's process executes another program. */
#define HFN_ROW_EXECUTES 1u

/* The words in front of the cells: 64 bytes. */
typedef struct hfn_cell_header {
    uint32_t cells_used;   /* cells [0, cells_used) may be in use                       */
    uint32_t threads_lost; /* threads that got no row: their calls are not counted      */
    uint32_t slots_used;   /* slots that hooks may count in; 0: all of them             */
    uint32_t reserved;
    uint64_t spare[6];
} hfn_cell_header;

/* Where a set of rows lies in this process. */
typedef struct hfn_row_memory {
    uint32_t thread_capacity;
    uint32_t slot_capacity;
    uint32_t row_bytes; /* from one row to the next; a multiple of the page size        */
    hfn_cell_header *header;
    hfn_thread_cell *cells; /* [thread_capacity]                                      */
    uint8_t *rows;          /* [thread_capacity * row_bytes]; slot n of a row lies at byte 8 * n */
} hfn_row_memory;

#endif
