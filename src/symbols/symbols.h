/* SPDX-License-Identifier: MIT */
/* The symbols as the later folders use them: the sorted table itself, without copies. */
#ifndef HFN_SYMBOLS_SYMBOLS_H
#define HFN_SYMBOLS_SYMBOLS_H

#include <hotfn/lowlevel/symbols.h>
#include <stdbool.h>

typedef struct hfn_symbol {
    uint64_t rva, byte_count;
    const char *name;            /* view */
    uint8_t kind, source, flags; /* HOTFN_SYMBOL_*, HOTFN_SOURCE_*, HOTFN_SYMBOL_GLOBAL ... */
    uint32_t module;             /* number for hfn_symbol_table_module_name; 0: unknown */
} hfn_symbol;

/* hotfn_symbols_get_count symbols, sorted by rva, then GLOBAL first, then by name. */
const hfn_symbol *hfn_symbols_table(const hotfn_symbols *symbols);

/* True if the image has packed symbols that could not be unpacked. */
bool hfn_symbols_unpack_failed(const hotfn_symbols *symbols);
/* True if a separate debug file, or a PDB, was searched without result. */
bool hfn_symbols_lack_debug_file(const hotfn_symbols *symbols);
/* Search again for that of the image at path: true if there is one now. */
bool hfn_symbols_find_debug_file(const char *path, const hotfn_symbols_options *options,
                                 const hotfn_env *env);

#endif
