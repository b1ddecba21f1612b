/* SPDX-License-Identifier: MIT */
/* The table that the sources fill: growing, then sorted and rid of doubles once. */
#ifndef HFN_SYMBOLS_TABLE_H
#define HFN_SYMBOLS_TABLE_H

#include "base/memory.h"
#include "symbols/symbols.h"

typedef struct hfn_symbol_table {
    hotfn_env env;
    hfn_arena names; /* for names that no file holds as they are shown */
    hfn_symbol *items;
    size_t capacity;
    uint32_t count;
    uint32_t function_count; /* FUNCTION and IFUNC among them */
} hfn_symbol_table;

void hfn_symbol_table_init(hfn_symbol_table *table, const hotfn_env *env);
void hfn_symbol_table_finish(hfn_symbol_table *table);
/* False if there is no memory. */
bool hfn_symbol_table_add(hfn_symbol_table *table, const hfn_symbol *symbol);
/* Sort by rva, then GLOBAL first, then name; equal names at one rva become one symbol, which has
 * the first source's size and kind and the flags of all. False if there is no memory. */
bool hfn_symbol_table_sort(hfn_symbol_table *table);

#endif
