/* SPDX-License-Identifier: MIT */
/* Rows of hotfn_counts_local in ClickHouse's Native format: one block, column after column.
 * A block is stored in whole or not at all; a body that is cut off is not stored. */
#ifndef HOTFN_COLLECTOR_CLICKHOUSE_BLOCK_H
#define HOTFN_COLLECTOR_CLICKHOUSE_BLOCK_H

#include "buffer.h"

enum { BLOCK_COLUMNS = 13 };
#define ALL_CALLERS UINT32_MAX /* the caller of a row that has the sum of a function */

typedef struct count_block {
    byte_buffer columns[BLOCK_COLUMNS];
    byte_buffer labels;   /* texts of the column of labels, whose own bytes are offsets */
    uint64_t label_count; /* of the rows so far */
    uint64_t row_count;
} count_block;

/* What all rows of a run have in common. */
typedef struct block_run {
    uint16_t day;
    uint64_t batch, run, start_ns;
    uint32_t build, client;
    bool timed;
    const byte_buffer *labels; /* each: byte count and bytes */
    uint32_t label_count;
    const void *rows, *callers; /* packed */
    size_t row_bytes, caller_bytes;
} block_run;

/* False if the packed rows are damaged, or without memory. */
bool block_add_run(count_block *b, const block_run *run);
void block_finish(const count_block *b, byte_buffer *out);
/* Remove all rows, and keep the memory. */
void block_clear(count_block *b);
void block_free(count_block *b);

#endif
