/* SPDX-License-Identifier: MIT */
/* The packed rows of a run: for each called function, in ascending order, the distance from the
 * number before (the first: number + 1), calls and, in a timed run, total_ns, self_ns and max_ns.
 * Callers are triples: caller + 1 (0: code that is not timed), callee, calls.  All numbers are
 * unsigned LEB128. */
#ifndef HOTFN_COLLECTOR_PACK_H
#define HOTFN_COLLECTOR_PACK_H

#include "buffer.h"

typedef struct packed_row {
    uint32_t function;
    uint64_t values[3]; /* calls, total_ns, self_ns */
    uint64_t max_ns;
} packed_row;

/* rows have different functions in ascending order. */
void pack_rows(byte_buffer *out, const packed_row *rows, uint32_t count, bool timed);

typedef struct row_reader {
    byte_cursor cursor;
    uint64_t next; /* the number before, plus 1 */
    bool timed;
} row_reader;

row_reader begin_rows(const void *bytes, size_t byte_count, bool timed);
/* False at the end of the rows, and where they are damaged (then cursor.failed is set). */
bool read_row(row_reader *r, packed_row *out);

#endif
