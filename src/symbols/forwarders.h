/* SPDX-License-Identifier: MIT */
/* Follows forwarded exports through the files of other libraries. */
#ifndef HFN_SYMBOLS_FORWARDERS_H
#define HFN_SYMBOLS_FORWARDERS_H

#include "symbols/pe_exports.h"

#include <hotfn/lowlevel/symbols.h>

/* A library that a forwarder names; opened once. */
typedef struct hfn_library {
    const char *name;   /* as in the forwarder: without ".dll" */
    hotfn_image *image; /* NULL: not found, or broken */
    hfn_exports exports;
} hfn_library;

typedef struct hfn_forwarders {
    const hotfn_env *env;
    const hotfn_symbols_options *options; /* borrowed: its folders */
    const char *folder;                   /* of the image, NULL if it has none */
    hfn_arena names;
    hfn_library *libraries;
    size_t capacity;
    uint32_t count;
} hfn_forwarders;

/* False if there is no memory; then there is nothing to finish. */
bool hfn_forwarders_init(hfn_forwarders *f, const hotfn_image *image,
                         const hotfn_symbols_options *options, const hotfn_env *env);
void hfn_forwarders_finish(hfn_forwarders *f);

/* Follows "LIBRARY.Name" to its end: *library is a library with an image, and *rva the function in
 * it.  *library is NULL if a file on the way does not exist or does not export the name.  False if
 * there is no memory. */
bool hfn_forwarders_follow(hfn_forwarders *f, const char *forward, const hfn_library **library,
                           uint64_t *rva);

#endif
