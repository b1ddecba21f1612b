/* SPDX-License-Identifier: MIT */
/* Finds the unwind data of one function of a loaded module with the sorted table of
 * .eh_frame_hdr. */
#ifndef HFN_FUNCTIONS_EH_FRAME_FIND_H
#define HFN_FUNCTIONS_EH_FRAME_FIND_H

#include "functions/eh_frame_read.h"

typedef struct hfn_eh_table {
    hfn_eh_bytes eh; /* the mapped bytes around it, with .eh_frame */
    uint64_t at;     /* offset of the first entry in them */
    uint64_t header; /* the address that entries are relative to */
    uint32_t count;
} hfn_eh_table;

typedef struct hfn_eh_function {
    hfn_cie cie;
    hfn_span instructions;
    uint64_t byte_count;
} hfn_eh_function;

/* bytes are mapped memory that contains .eh_frame_hdr at address `header`.  False if the table has
 * another form than linkers write. */
bool hfn_eh_table_open(hfn_eh_table *out, hfn_eh_bytes bytes, uint64_t header);
/* Finds the function that begins at exactly this address; false if there is none. */
bool hfn_eh_table_find(const hfn_eh_table *table, uint64_t address, hfn_eh_function *out);

#endif
