/* SPDX-License-Identifier: MIT */
/* Packed rows: of each row only the slots that counted, as pairs of ULEB128 numbers: how many zero
 * slots were passed over, then the count (never 0).  As a section: the row count's worth of u64, each
 * the end of its row counted from the first packed byte, then the packed bytes. */
#ifndef HFN_RECORDS_PACK_H
#define HFN_RECORDS_PACK_H

#include "base/memory.h"
#include "base/span.h"

#include <hotfn/env.h>

typedef struct hfn_packed {
    hotfn_env env;
    uint8_t *bytes;
    size_t byte_count, byte_capacity;
    uint64_t *ends;
    size_t row_count, row_capacity;
    uint32_t zeros; /* passed over in the row that is being packed */
} hfn_packed;

void hfn_packed_init(hfn_packed *packed, const hotfn_env *env);
void hfn_packed_finish(hfn_packed *packed);

/* Pack row after row: slots in order, in as many calls as it takes, then the end.  False: no memory. */
bool hfn_packed_slots(hfn_packed *packed, const uint64_t *counts, uint64_t slot_count);
void hfn_packed_skip(hfn_packed *packed, uint64_t zero_count);
bool hfn_packed_end_row(hfn_packed *packed);

/* The packed bytes of one row; empty past the end. */
hfn_span hfn_packed_row(const hfn_packed *packed, uint64_t row);

/* Read through one packed row.  Start with slot 0 and offset 0; false at its end or at nonsense. */
typedef struct hfn_unpacker {
    hfn_span row;
    uint64_t offset, slot;
} hfn_unpacker;
bool hfn_unpack(hfn_unpacker *u, uint64_t slot_count, uint64_t *slot, uint64_t *count);

/* totals[i] += the row's slot i, for i < slot_count; answers the row's sum.  Sums stop at UINT64_MAX. */
uint64_t hfn_unpack_add(hfn_span row, uint64_t *totals, uint64_t slot_count);

/* The rows of a live record's file, sparse parts passed over. */
hotfn_status hfn_packed_read(hfn_packed *out, int fd, uint64_t rows_offset, uint32_t row_bytes,
                             uint32_t row_count, uint32_t slot_count, const char *path,
                             hotfn_error *err);
/* out = to - from, row by row; rows that from lacks are taken whole. */
bool hfn_packed_difference(hfn_packed *out, const hfn_packed *to, const hfn_packed *from,
                           uint32_t slot_count);

#endif
