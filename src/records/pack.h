/* SPDX-License-Identifier: MIT */
/* Packed rows.  A row holds only the slots that are not 0, each as two ULEB128 numbers: the number
 * of zero slots before it, and its count.  A section of packed rows in a file begins with one u64
 * for each row, the offset of its end from the first packed byte; the packed bytes follow. */
#ifndef HFN_RECORDS_PACK_H
#define HFN_RECORDS_PACK_H

#include "base/memory.h"
#include "base/span.h"
#include "os/files.h"

#include <hotfn/env.h>

typedef struct hfn_packed {
    hotfn_env env;
    uint8_t *bytes;
    size_t byte_count, byte_capacity;
    uint64_t *ends;
    size_t row_count, row_capacity;
    uint32_t zeros; /* zero slots since the latest count of the row that is being packed */
} hfn_packed;

void hfn_packed_init(hfn_packed *packed, const hotfn_env *env);
void hfn_packed_finish(hfn_packed *packed);

/* Pack each row: append or skip its slots in order, then end it.  False: no memory. */
bool hfn_packed_append(hfn_packed *packed, const uint64_t *counts, uint64_t slot_count);
void hfn_packed_skip_slots(hfn_packed *packed, uint64_t zero_count);
bool hfn_packed_end_row(hfn_packed *packed);

/* The packed bytes of one row; empty past the end. */
hfn_span hfn_packed_row(const hfn_packed *packed, uint64_t row);

/* Read one packed row.  Start with slot 0 and offset 0.  False at the end of the row, or where its
 * bytes are damaged: then offset is not row.size. */
typedef struct hfn_unpacker {
    hfn_span row;
    uint64_t offset, slot;
} hfn_unpacker;
bool hfn_unpack_next(hfn_unpacker *u, uint64_t slot_count, uint64_t *slot, uint64_t *count);

/* Add the slots of a row below slot_count to totals, if it is not NULL.  Returns the sum of the
 * row. Sums are clamped to UINT64_MAX. */
uint64_t hfn_unpack_add(hfn_span row, uint64_t *totals, uint64_t slot_count);

/* Pack the rows of the file of a live record; holes in the file are skipped. */
hotfn_status hfn_packed_read(hfn_packed *out, hfn_os_file file, uint64_t rows_offset,
                             uint32_t row_bytes, uint32_t row_count, uint32_t slot_count,
                             const char *path, hotfn_error *err);
/* out = to - from, row by row; a row that `from` lacks counts as 0.  False: no memory. */
bool hfn_packed_subtract(hfn_packed *out, const hfn_packed *to, const hfn_packed *from,
                         uint32_t slot_count);

#endif
