/* SPDX-License-Identifier: MIT */
/* What the later folders read of the symbols: the sorted table itself, without copies. */
#ifndef HFN_SYMBOLS_SYMBOLS_H
#define HFN_SYMBOLS_SYMBOLS_H

#include <hotfn/lowlevel/symbols.h>
#include <stdbool.h>

typedef struct hfn_symbol {
    uint64_t rva, byte_count;
    const char *name;            /* view */
    uint8_t kind, source, flags; /* HOTFN_SYMBOL_*, HOTFN_SOURCE_*, HOTFN_SYMBOL_GLOBAL ... */
    uint32_t module;             /* 0 unknown, else of hfn_symbol_table_module */
} hfn_symbol;

/* hotfn_symbols_get_count of them, by rva, then GLOBAL first, then name. */
const hfn_symbol *hfn_symbols_table(const hotfn_symbols *symbols);

/* Were there some that are packed, and could not be unpacked? */
bool hfn_symbols_lacks_packed(const hotfn_symbols *symbols);

#endif
