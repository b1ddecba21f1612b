/* SPDX-License-Identifier: MIT */
/* Android's releases, as far as a filter of the method trace must know them: the function that
 * stores an event, and where a method's class, class loader and name are. */
#ifndef HFN_RUNTIMES_ART_VERSIONS_H
#define HFN_RUNTIMES_ART_VERSIONS_H

#include "runtimes/methods.h"

typedef struct hfn_art_version {
    const char *releases;
    const char *event_symbol; /* of the function that stores an event */
    const char *name_symbol;  /* of the function that returns a method's name, up to the place of
                                 a mark of libstdc++; NULL: Dalvik */
    const char *name_types;   /* the rest of this symbol */
    uint32_t enter;           /* the action of an entry; all others are exits */
    uint32_t class_offset;    /* of the word in a method that refers to its class */
} hfn_art_version;

/* What a filter needs of the module at base. */
typedef struct hfn_art_symbols {
    const hfn_art_version *version;
    void *store_event, *get_name; /* get_name is NULL in Dalvik          */
    bool is_libstdcxx;            /* get_name returns its std::string    */
} hfn_art_symbols;

typedef enum hfn_art_search {
    HFN_ART_NONE,    /* the module is no virtual machine of Android           */
    HFN_ART_UNKNOWN, /* it is one, of a release without a known event function */
    HFN_ART_FOUND,
} hfn_art_search;

hfn_art_search hfn_art_find_version(hfn_art_symbols *out, hfn_find_symbol_fn *find_symbol,
                                    uint64_t base);

/* Was the method's class loaded by the boot class loader, as those of the system are? */
bool hfn_art_is_system(const hfn_art_version *version, uint64_t method);
/* The word that refers to the method's class. */
uint64_t hfn_art_get_class(const hfn_art_version *version, uint64_t method);

/* Write the name, as "package.Class.method (argument types): type", or in Dalvik with its short
 * signature: "package.Class.method (VI)".  Called by a thread that reports an event of it. */
void hfn_art_write_name(char *out, size_t out_bytes, const hfn_art_symbols *symbols,
                        uint64_t method);

#endif
