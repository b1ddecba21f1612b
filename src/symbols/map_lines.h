/* SPDX-License-Identifier: MIT */
/* The source lines of a linker map (Microsoft's, /MAPINFO:LINES), sorted by address. */
#ifndef HFN_SYMBOLS_MAP_LINES_H
#define HFN_SYMBOLS_MAP_LINES_H

#include "symbols/table.h"

/* The code from address up to the next entry belongs to this line. */
typedef struct hfn_map_line {
    uint64_t address;
    uint32_t line, file; /* file: index of files */
} hfn_map_line;

typedef struct hfn_map_line_table {
    hotfn_env env;
    const hfn_symbol_table *symbols; /* kept; must be sorted before the first query */
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

/* Sets the file of the following lines.  These calls return false if there is no memory. */
bool hfn_map_lines_file(hfn_map_line_table *table, const char *name);
bool hfn_map_lines_add(hfn_map_line_table *table, uint64_t address, uint32_t line);
/* Sorts the lines, converts addresses to RVAs and removes those below base. */
bool hfn_map_lines_finish(hfn_map_line_table *table, uint64_t base);

/* For hfn_line_source: finds the last line that begins at or before rva, within the same symbol.
 * If several lines begin there, the first one in the map is used. */
hotfn_status hfn_map_lines_find(void *table, uint64_t rva, hotfn_source_line *out);

#endif
