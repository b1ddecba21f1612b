/* SPDX-License-Identifier: MIT */
/* Rows of the export directory of a PE image, whose tables are checked once. */
#ifndef HFN_SYMBOLS_PE_EXPORTS_H
#define HFN_SYMBOLS_PE_EXPORTS_H

#include "image/pe.h"
#include "symbols/table.h"

/* The directory's tables as spans; all empty if the image exports nothing. */
typedef struct hfn_exports {
    const hotfn_image *image;
    hfn_span functions;    /* an RVA each; the index is the ordinal minus ordinal_base */
    hfn_span names;        /* an RVA each, sorted by name                              */
    hfn_span name_indices; /* the index of the function of each name */
    uint32_t function_count, name_count, ordinal_base;
} hfn_exports;

typedef struct hfn_export {
    uint32_t index;      /* in functions                                    */
    uint64_t rva;        /* 0 if it is forwarded                            */
    const char *name;    /* view; NULL if it has no readable name */
    const char *forward; /* view; "LIBRARY.Name" or "LIBRARY.#12", or NULL  */
} hfn_export;

/* HOTFN_OK; HOTFN_E_FORMAT, with the offset, if the tables lie outside the file. */
hotfn_status hfn_exports_open(hfn_exports *out, const hotfn_image *image, hotfn_error *err);
/* The row of the n-th name, or of the function at index.  False if there is no such row or it is
 * empty. */
bool hfn_exports_named(const hfn_exports *exports, uint32_t n, hfn_export *out);
bool hfn_exports_at(const hfn_exports *exports, uint32_t index, hfn_export *out);
/* Finds a row by name or by "#12".  The search by name relies on the names being sorted. */
bool hfn_exports_find(const hfn_exports *exports, const char *name, hfn_export *out);

/* Adds the exports in code of this image, with source EXPORTS; exports of data as well if
 * want_data. HOTFN_E_NO_MEMORY, or a status of hfn_exports_open. */
hotfn_status hfn_exports_read(hfn_symbol_table *table, const hotfn_image *image, bool want_data,
                              hotfn_error *err);

#endif
