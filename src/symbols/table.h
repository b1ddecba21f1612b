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
    const char **modules;
    size_t module_capacity;
    uint32_t module_count;
    bool sorted; /* since the last add */
} hfn_symbol_table;

void hfn_symbol_table_init(hfn_symbol_table *table, const hotfn_env *env);
void hfn_symbol_table_finish(hfn_symbol_table *table);
/* False if there is no memory. */
bool hfn_symbol_table_add(hfn_symbol_table *table, const hfn_symbol *symbol);
/* The number of the next module, for hfn_symbol.module; name is kept (a view). 0 if there is no
 * memory. Give each module once: names are not compared. */
uint32_t hfn_symbol_table_module(hfn_symbol_table *table, const char *name);
const char *hfn_symbol_table_module_name(const hfn_symbol_table *table, uint32_t module);
/* Sort by rva, then GLOBAL first, then name; equal names at one rva become one symbol, which has
 * the first source's size and kind and the flags of all. False if there is no memory. */
bool hfn_symbol_table_sort(hfn_symbol_table *table);

#endif
