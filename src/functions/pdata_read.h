/* SPDX-License-Identifier: MIT */
/* Reads one entry of .pdata with its unwind information.  Sources: Microsoft, 'x64 exception
 * handling' and 'ARM64 exception handling'. */
#ifndef HFN_FUNCTIONS_PDATA_READ_H
#define HFN_FUNCTIONS_PDATA_READ_H

#include "image/pe.h"

typedef struct hfn_pdata {
    const hotfn_image *image;
    hfn_span table;
    uint64_t table_rva;
    uint32_t machine, entry_bytes, count;
} hfn_pdata;

typedef struct hfn_pdata_entry {
    uint64_t rva, byte_count;
    uint64_t parent;        /* begin of its function for a chained entry, else rva */
    uint64_t language_data; /* RVA of the handler's data; 0 if it has no handler */
    uint64_t handler;
    uint32_t prologue_bytes;
    bool inside; /* the first byte lies inside a frame that other code made */
} hfn_pdata_entry;

/* The count is 0 for an image without .pdata or for another machine. */
void hfn_pdata_open(hfn_pdata *out, const hotfn_image *image);

/* False if the entry is not a range of this image, or if its unwind information is broken; then
 * *broken_at is the RVA of the broken part (0: an empty entry, used as padding). */
bool hfn_pdata_read(const hfn_pdata *pdata, uint32_t index, hfn_pdata_entry *out,
                    uint64_t *broken_at);

#endif
