/* SPDX-License-Identifier: MIT */
/* The export directory of a PE image as rows, checked once. */
#ifndef HFN_SYMBOLS_PE_EXPORTS_H
#define HFN_SYMBOLS_PE_EXPORTS_H

#include "image/pe.h"
#include "symbols/table.h"

/* The directory's tables as spans; all empty if the image exports nothing. */
typedef struct hfn_exports {
    const hotfn_image *image;
    hfn_span functions;    /* an RVA each; the index is the ordinal minus ordinal_base */
    hfn_span names;        /* an RVA each, sorted by name                              */
    hfn_span name_indices; /* which function each name is of                           */
    uint32_t function_count, name_count, ordinal_base;
} hfn_exports;

typedef struct hfn_export {
    uint32_t index;      /* in functions                                    */
    uint64_t rva;        /* 0 if it is forwarded                            */
    const char *name;    /* view; NULL if it has none that can be read      */
    const char *forward; /* view; "LIBRARY.Name" or "LIBRARY.#12", or NULL  */
} hfn_export;

/* HOTFN_OK; HOTFN_E_FORMAT, with the offset, if the tables lie outside the file. */
hotfn_status hfn_exports_open(hfn_exports *out, const hotfn_image *image, hotfn_error *err);
/* The n-th name, or the function of that index.  False if there is no such or it is empty. */
bool hfn_exports_named(const hfn_exports *exports, uint32_t n, hfn_export *out);
bool hfn_exports_at(const hfn_exports *exports, uint32_t index, hfn_export *out);
/* By name (the names are sorted, or it is not found), or by "#12". */
bool hfn_exports_find(const hfn_exports *exports, const char *name, hfn_export *out);

/* Add all that are code or, if wanted, data of this image: source EXPORTS.  HOTFN_E_NO_MEMORY, or
 * what hfn_exports_open says. */
hotfn_status hfn_exports_read(hfn_symbol_table *table, const hotfn_image *image, bool want_data,
                              hotfn_error *err);

#endif
