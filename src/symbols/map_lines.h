/* SPDX-License-Identifier: MIT */
/* Source lines of a linker map (Microsoft's, /MAPINFO:LINES): a table by address. */
#ifndef HFN_SYMBOLS_MAP_LINES_H
#define HFN_SYMBOLS_MAP_LINES_H

#include "symbols/table.h"

/* Code from address on is of this line. */
typedef struct hfn_map_line {
    uint64_t address;
    uint32_t line, file; /* file: index of files */
} hfn_map_line;

typedef struct hfn_map_line_table {
    hotfn_env env;
    const hfn_symbol_table *symbols; /* kept; sorted by the time of the first question */
    hfn_map_line *items;             /* by address, once finished */
    size_t capacity;
    uint32_t count;
    const char **files; /* kept: in the symbols' arena */
    size_t file_capacity;
    uint32_t file_count;
} hfn_map_line_table;

/* NULL if there is no memory. */
hfn_map_line_table *hfn_map_lines_new(const hfn_symbol_table *symbols);
void hfn_map_lines_destroy(void *table); /* NULL is fine */

/* The lines that follow are of this file.  False if there is no memory, as below. */
bool hfn_map_lines_file(hfn_map_line_table *table, const char *name);
bool hfn_map_lines_add(hfn_map_line_table *table, uint64_t address, uint32_t line);
/* Sorts; addresses become RVAs, and those below base go. */
bool hfn_map_lines_finish(hfn_map_line_table *table, uint64_t base);

/* For hfn_line_source: the last line that begins at rva or before it, within the same symbol.  Of
 * several at one address the first in the map counts. */
hotfn_status hfn_map_lines_find(void *table, uint64_t rva, hotfn_source_line *out);

#endif
