/* SPDX-License-Identifier: MIT */
/*
 * Maps of three linkers:
 * - LLVM's lld for ELF (columns VMA LMA Size Align);
 * - lld-link /lldmap and lld's -Map for PE (Address Size Align; addresses relative to the image
 *   base);
 * - mold (VMA Size Align; sizes are decimal).
 * Behind the columns the indentation determines the kind of a line: 0 blanks an output section, 8
 * an input section `file:(section)`, 16 a symbol. Only lld for ELF writes the sizes of symbols.
 * Sources: the documentation of -Map in lld and mold; the rest was derived from their output.
 */
#include "symbols/map.h"

#include <string.h>

enum { COLUMNS_ELF, COLUMNS_PE, COLUMNS_MOLD };
enum { DEPTH_OUT = 0, DEPTH_IN = 8, DEPTH_SYMBOL = 16 };

typedef struct columns {
    uint64_t address, byte_count;
    size_t depth;
    hfn_text text;
} columns;

static bool take_number(hfn_text *line, int kind, uint64_t *out)
{
    hfn_text_take_blanks(line);
    return kind == COLUMNS_MOLD ? hfn_text_take_decimal(line, out) : hfn_text_take_hex(line, out);
}

static bool take_columns(hfn_text line, int kind, columns *c)
{
    uint64_t skipped;

    hfn_text_take_blanks(&line);
    if (kind == COLUMNS_MOLD ? !hfn_text_take_0x(&line, &c->address) && !hfn_text_take(&line, "0")
                             : !hfn_text_take_hex(&line, &c->address)) {
        return false;
    }
    if ((kind == COLUMNS_ELF && !take_number(&line, kind, &skipped)) ||
        !take_number(&line, kind, &c->byte_count)) {
        return false;
    }
    hfn_text_take_blanks(&line);
    if (!hfn_text_take_decimal(&line, &skipped) || !hfn_text_take(&line, " ")) {
        return false;
    }
    c->depth = hfn_text_take_blanks(&line);
    c->text = line;
    return line.at < line.end;
}

/* The file in `a.o:(.text)`; empty for a part that the linker made itself. */
static hfn_text file_of(hfn_text text)
{
    const char *found = NULL, *next = hfn_text_find(text, ":(");

    while (next) { /* the last match: a path may contain any text */
        found = next;
        next = hfn_text_find((hfn_text){ next + 2, text.end }, ":(");
    }
    if (!found || hfn_text_begins(text, "<internal>")) {
        return (hfn_text){ text.at, text.at };
    }
    return (hfn_text){ text.at, found };
}

static bool is_assignment(hfn_text text)
{
    hfn_text_take_word(&text);
    return hfn_text_begins(text, " = ") || hfn_text_begins(text, " (");
}

static hotfn_status read_out(hfn_linker_map *map, int kind, const columns *c)
{
    uint32_t flags = hfn_map_flags_of(c->text);

    map->module = 0;
    if (is_assignment(c->text)) {
        return hfn_map_add_assignment(map, c->address, c->text);
    }
    if (kind == COLUMNS_MOLD && hfn_text_is(c->text, "EHDR")) {
        map->base = c->address;
        map->has_base = true;
    }
    if (kind == COLUMNS_MOLD && (hfn_text_begins(c->text, ".relro_padding") ||
                                 (c->text.at < c->text.end && *c->text.at != '.'))) {
        return HOTFN_OK; /* the headers, or padding that is not a section */
    }
    return hfn_map_add_section(map, c->text, c->address, c->byte_count, flags);
}

static hotfn_status read_in(hfn_linker_map *map, const columns *c)
{
    hfn_map_section *section = hfn_map_last_section(map);
    hotfn_status status;

    if (is_assignment(c->text) && !hfn_text_find(c->text, ":(")) {
        return hfn_map_add_assignment(map, c->address, c->text);
    }
    status = hfn_map_set_module(map, file_of(c->text));
    if (status != HOTFN_OK || !section || section->flags & (HFN_MAP_THREAD | HFN_MAP_UNLOADED)) {
        return status;
    }
    return hfn_map_add_piece(map, c->address, c->byte_count, section);
}

static hotfn_status read_symbol(hfn_linker_map *map, int kind, const columns *c)
{
    hfn_map_row row = { .name = c->text, .address = c->address };
    const hfn_map_section *section = hfn_map_last_section(map);

    if (kind == COLUMNS_ELF) {
        row.byte_count = c->byte_count;
    }
    if (!section) {
        hfn_map_count_fault(map, &map->stray);
        return HOTFN_OK;
    }
    return hfn_map_add_row(map, &row, section);
}

/* The kind of map by the column names in the first line; -1 if it is not known. */
static int columns_of(hfn_text line)
{
    hfn_text_take_blanks(&line);
    if (hfn_text_take(&line, "Address")) {
        hfn_text_take_blanks(&line);
        return hfn_text_begins(line, "Size     Align Out     In      Symbol") ? COLUMNS_PE : -1;
    }
    if (!hfn_text_take(&line, "VMA")) {
        return -1;
    }
    hfn_text_take_blanks(&line);
    if (hfn_text_begins(line, "Size Align Out     In      Symbol")) {
        return COLUMNS_MOLD;
    }
    return hfn_text_begins(line, "LMA ") ? COLUMNS_ELF : -1;
}

static hotfn_status read_line(hfn_linker_map *map, int kind, hfn_text line)
{
    columns c = { 0 };

    if (line.at == line.end) {
        return HOTFN_OK;
    }
    if (take_columns(line, kind, &c)) {
        if (c.depth == DEPTH_OUT) {
            return read_out(map, kind, &c);
        }
        if (c.depth == DEPTH_IN) {
            return read_in(map, &c);
        }
        if (c.depth == DEPTH_SYMBOL) {
            return read_symbol(map, kind, &c);
        }
    }
    if (columns_of(line) != kind) {
        hfn_map_count_fault(map, &map->unknown);
    }
    return HOTFN_OK;
}

hotfn_status hfn_map_read_lld(hfn_linker_map *map)
{
    hotfn_status status = HOTFN_OK;
    hfn_text line;
    int kind = -1;

    while (kind < 0 && hfn_map_next_line(&map->lines, &line)) {
        kind = columns_of(line);
    }
    if (kind == COLUMNS_PE) {
        map->has_base = true; /* 0 */
    }
    map->image_format = kind == COLUMNS_PE ? HOTFN_FORMAT_PE : HOTFN_FORMAT_ELF;
    while (status == HOTFN_OK && hfn_map_next_line(&map->lines, &line)) {
        status = read_line(map, kind, line);
    }
    return status == HOTFN_OK ? map->lines.status : status;
}
