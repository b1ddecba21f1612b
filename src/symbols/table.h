/* SPDX-License-Identifier: MIT */
/* The table that all sources add to; sorting it also removes duplicates. */
#ifndef HFN_SYMBOLS_TABLE_H
#define HFN_SYMBOLS_TABLE_H

#include "base/memory.h"
#include "symbols/symbols.h"

typedef struct hfn_symbol_table {
    hotfn_env env;
    hfn_arena names; /* for names that no file contains in that form */
    hfn_symbol *items;
    size_t capacity;
    uint32_t count;
    uint32_t function_count; /* number of FUNCTION and IFUNC symbols */
    const char **modules;
    size_t module_capacity;
    uint32_t module_count;
    bool sorted; /* nothing was added since it was sorted */
} hfn_symbol_table;

void hfn_symbol_table_init(hfn_symbol_table *table, const hotfn_env *env);
void hfn_symbol_table_finish(hfn_symbol_table *table);
/* False if there is no memory. */
bool hfn_symbol_table_add(hfn_symbol_table *table, const hfn_symbol *symbol);
/* Adds a module and returns its number for hfn_symbol.module; name is kept (a view). 0 if there is
 * no memory. Add each module once: names are not compared. */
uint32_t hfn_symbol_table_module(hfn_symbol_table *table, const char *name);
const char *hfn_symbol_table_module_name(const hfn_symbol_table *table, uint32_t module);
/* Sorts by rva, then GLOBAL first, then by name.  Symbols with the same name and rva become one
 * symbol, which has the flags of all, the size of the first source that knows it, and the kind of
 * the first source that has not only a label.  False if there is no memory. */
bool hfn_symbol_table_sort(hfn_symbol_table *table);

#endif
