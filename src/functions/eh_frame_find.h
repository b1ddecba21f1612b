/* SPDX-License-Identifier: MIT */
/* The unwind data of one function of a module that is loaded, by the sorted table of
 * .eh_frame_hdr. */
#ifndef HFN_FUNCTIONS_EH_FRAME_FIND_H
#define HFN_FUNCTIONS_EH_FRAME_FIND_H

#include "functions/eh_frame_read.h"

typedef struct hfn_eh_table {
    hfn_eh_bytes eh; /* all that is mapped around it: .eh_frame too */
    uint64_t at;     /* of the table's first entry, from there      */
    uint64_t header; /* the address that entries count from         */
    uint32_t count;
} hfn_eh_table;

typedef struct hfn_eh_function {
    hfn_cie cie;
    hfn_span instructions;
    uint64_t byte_count;
} hfn_eh_function;

/* bytes: what is mapped there, .eh_frame_hdr at address `header` in it.  False if the table is of
 * another kind than linkers write. */
bool hfn_eh_table_open(hfn_eh_table *out, hfn_eh_bytes bytes, uint64_t header);
/* The function that begins at the address. */
bool hfn_eh_table_find(const hfn_eh_table *table, uint64_t address, hfn_eh_function *out);

#endif
