/* SPDX-License-Identifier: MIT */
/*
 * Source lines of a linker map, which has the beginning of each line but not its end.  A line ends
 * where the next one begins, but at the latest at the end of its symbol, because the code after it
 * may have been compiled without line information.
 */
#include "symbols/map_lines.h"

#include "base/search.h"
#include "base/sort.h"

hfn_map_line_table *hfn_map_lines_new(const hfn_symbol_table *symbols)
{
    hfn_map_line_table *table = hfn_allocate_zeroed(&symbols->env, sizeof *table);

    if (table) {
        table->env = symbols->env;
        table->symbols = symbols;
    }
    return table;
}

void hfn_map_lines_destroy(void *state)
{
    hfn_map_line_table *table = state;
    hotfn_env env;

    if (!table) {
        return;
    }
    env = table->env;
    hfn_free_memory(&env, table->items, table->capacity * sizeof *table->items);
    hfn_free_memory(&env, table->files, table->file_capacity * sizeof *table->files);
    hfn_free_memory(&env, table, sizeof *table);
}

bool hfn_map_lines_file(hfn_map_line_table *table, const char *name)
{
    if (table->file_count == UINT32_MAX ||
        !hfn_grow_array(&table->env, (void **)&table->files, &table->file_capacity,
                        (size_t)table->file_count + 1, sizeof *table->files)) {
        return false;
    }
    table->files[table->file_count++] = name;
    return true;
}

bool hfn_map_lines_add(hfn_map_line_table *table, uint64_t address, uint32_t line)
{
    if (table->count == UINT32_MAX ||
        !hfn_grow_array(&table->env, (void **)&table->items, &table->capacity,
                        (size_t)table->count + 1, sizeof *table->items)) {
        return false;
    }
    table->items[table->count++] = (hfn_map_line){ address, line, table->file_count - 1 };
    return true;
}

static bool comes_before(const void *left, const void *right)
{
    const hfn_map_line *a = left, *b = right;

    return a->address < b->address;
}

bool hfn_map_lines_finish(hfn_map_line_table *table, uint64_t base)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < table->count; i++) {
        hfn_map_line line = table->items[i];
        if (line.address < base) {
            continue;
        }
        line.address -= base;
        table->items[kept++] = line;
    }
    table->count = kept;
    return hfn_sort_array(&table->env, (void **)&table->items, table->capacity, kept,
                          sizeof *table->items, comes_before);
}

/* The number of lines that begin before rva. */
static uint32_t count_before(const hfn_map_line_table *table, uint64_t rva)
{
    return (uint32_t)hfn_count_below(table->items, table->count, sizeof *table->items,
                                     offsetof(hfn_map_line, address), rva);
}

/* Stores the range of the last symbol that begins at or before rva; false if there is none. */
static bool find_symbol(const hfn_symbol_table *symbols, uint64_t rva, uint64_t *begin,
                        uint64_t *end)
{
    size_t low = hfn_count_up_to(symbols->items, symbols->count, sizeof *symbols->items,
                                 offsetof(hfn_symbol, rva), rva);

    if (low == 0) {
        return false;
    }
    *begin = symbols->items[low - 1].rva;
    *end = *begin + symbols->items[low - 1].byte_count;
    if (low < symbols->count && symbols->items[low].rva < *end) {
        *end = symbols->items[low].rva;
    }
    return rva < *end;
}

hotfn_status hfn_map_lines_find(void *state, uint64_t rva, hotfn_source_line *out)
{
    const hfn_map_line_table *table = state;
    const hfn_map_line *found;
    uint64_t begin, end;
    uint32_t next; /* the first line that begins after rva */

    if (!find_symbol(table->symbols, rva, &begin, &end)) {
        return HOTFN_E_NOT_FOUND;
    }
    next = count_before(table, rva + 1); /* rva < end: no overflow */
    if (next == 0 || table->items[next - 1].address < begin) {
        return HOTFN_E_NOT_FOUND;
    }
    found = &table->items[count_before(table, table->items[next - 1].address)];
    if (next < table->count && table->items[next].address < end) {
        end = table->items[next].address;
    }
    out->file = table->files[found->file];
    out->line = found->line;
    out->rva = found->address;
    out->byte_count = end - found->address;
    return HOTFN_OK;
}
