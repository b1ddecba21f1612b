/* SPDX-License-Identifier: MIT */
/*
 * Maps of Microsoft's linker and of lld-link /map. They have two tables: groups with their class
 * (CODE or DATA), and public symbols as `seg:offset name address flags object`, followed by static
 * symbols in the same form. The flag 'f' marks a function, 'i' an inline function (a folded
 * COMDAT); lld-link does not write 'f'. A name may contain blanks, and a single blank follows a
 * name that is wider than its column: the name ends before the first word of 8 or 16 hexadecimal
 * digits, which is the address. Old linkers (/MAPINFO:LINES) add tables of lines, with up to four
 * `line seg:offset` in a row. Source: Microsoft Learn, '/MAP (Generate Mapfile)'.
 */
#include "symbols/map.h"

#include <string.h>

/* `0001:00000000 0008d268H .text                   CODE` */
typedef struct group {
    uint64_t offset, byte_count;
    uint32_t segment;
    bool code;
} group;

enum { PART_GROUPS, PART_ROWS, PART_LINES, PART_OTHER };

typedef struct reader {
    hfn_linker_map *map; /* segment n is its section n - 1 */
    group *groups;
    size_t capacity, count; /* groups by segment and offset */
    uint64_t entry_segment, entry_offset;
    int part; /* PART_* */
    bool statics, has_entry, has_function_flags;
} reader;

/* Reads `0001:00000000 ` at the front of *text. */
static bool take_place(hfn_text *text, uint64_t *number, uint64_t *offset)
{
    hfn_text rest = *text;

    if (!hfn_text_take_hex(&rest, number) || rest.at - text->at != 4 ||
        !hfn_text_take(&rest, ":") || !hfn_text_take_hex(&rest, offset) || *offset > UINT32_MAX) {
        return false;
    }
    *text = rest;
    hfn_text_take_blanks(text);
    return true;
}

/* Adds segments up to number; a segment is UNLOADED until a row gives its address. */
static hotfn_status add_segments(reader *r, uint64_t number, hfn_text name)
{
    hotfn_status status = HOTFN_OK;

    while (status == HOTFN_OK && r->map->section_count < number) {
        status = hfn_map_add_section(r->map, name, 0, 0, HFN_MAP_UNLOADED);
    }
    return status;
}

static hotfn_status read_group(reader *r, uint64_t number, uint64_t offset, hfn_text text)
{
    group g = { .offset = offset, .segment = (uint32_t)number };
    hfn_text name;
    hotfn_status status;

    if (!hfn_text_take_hex(&text, &g.byte_count) || !hfn_text_take(&text, "H") ||
        g.byte_count > UINT32_MAX) {
        hfn_map_count_fault(r->map, &r->map->unknown);
        return HOTFN_OK;
    }
    if (number == 0) {
        return HOTFN_OK;
    }
    if (r->count &&
        (r->groups[r->count - 1].segment > number ||
         (r->groups[r->count - 1].segment == number && r->groups[r->count - 1].offset > offset))) {
        hfn_map_count_fault(r->map, &r->map->contradicting);
        return HOTFN_OK;
    }
    hfn_text_take_blanks(&text);
    name = hfn_text_take_word(&text);
    g.code = hfn_text_ends(text, "CODE");
    status = add_segments(r, number, name);
    if (status != HOTFN_OK) {
        return status;
    }
    if (!hfn_grow_array(&r->map->symbols->table.env, (void **)&r->groups, &r->capacity,
                        r->count + 1, sizeof *r->groups)) {
        return hfn_report_no_memory(r->map->err, r->map->lines.path);
    }
    r->groups[r->count++] = g;
    if (offset + g.byte_count > r->map->sections[number - 1].byte_count) {
        r->map->sections[number - 1].byte_count = offset + g.byte_count;
    }
    r->map->sections[number - 1].flags |= g.code ? HFN_MAP_CODE : 0;
    return HOTFN_OK;
}

/* True if the group that contains the offset is code: the last group that begins at or
 * before it. */
static bool in_code(const reader *r, uint64_t number, uint64_t offset)
{
    size_t low = 0, high = r->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const group *g = &r->groups[middle];
        if (g->segment < number || (g->segment == number && g->offset <= offset)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low > 0 && r->groups[low - 1].segment == number && r->groups[low - 1].code;
}

/* Reads the name, which ends before the address, and the address. */
static bool take_name(hfn_text *text, hfn_text *name, uint64_t *address)
{
    hfn_text rest = *text;

    name->at = rest.at;
    hfn_text_take_word(&rest);
    name->end = rest.at;
    while (hfn_text_take_blanks(&rest)) {
        hfn_text word = hfn_text_take_word(&rest);
        size_t digits = hfn_text_length(word);
        if ((digits == 8 || digits == 16) && hfn_text_take_hex(&word, address) &&
            word.at == word.end && name->end > name->at) {
            *text = rest;
            return true;
        }
        name->end = rest.at; /* the name has a blank in it */
    }
    return false;
}

/* The first row of a segment determines its address; all other rows must agree. */
static bool place_segment(reader *r, uint64_t number, uint64_t offset, uint64_t address)
{
    hfn_map_section *s = &r->map->sections[number - 1];

    if (address < offset) {
        return false;
    }
    if (s->flags & HFN_MAP_UNLOADED) {
        s->address = address - offset;
        s->line = r->map->lines.number;
        s->flags &= ~(uint32_t)HFN_MAP_UNLOADED;
    }
    return s->address == address - offset;
}

static uint8_t kind_of(const reader *r, uint64_t number, uint64_t offset, bool function,
                       hfn_text object)
{
    if (!function && !in_code(r, number, offset)) {
        return HOTFN_SYMBOL_DATA;
    }
    if (hfn_text_ends(object, ".dll") || hfn_text_ends(object, ".DLL")) {
        return HOTFN_SYMBOL_THUNK;
    }
    return function ? HOTFN_SYMBOL_FUNCTION : HOTFN_SYMBOL_LABEL;
}

static bool take_flag(hfn_text *text, const char *flag)
{
    hfn_text_take_blanks(text);
    return hfn_text_take(text, flag);
}

static hotfn_status read_row(reader *r, uint64_t number, uint64_t offset, hfn_text text)
{
    hfn_map_row row = { .flags = r->statics ? 0 : HOTFN_SYMBOL_GLOBAL };
    hotfn_status status;
    bool function;

    if (!take_name(&text, &row.name, &row.address)) {
        hfn_map_count_fault(r->map, &r->map->unknown);
        return HOTFN_OK;
    }
    function = take_flag(&text, "f ");
    take_flag(&text, "i ");
    hfn_text_take_blanks(&text);
    if (number == 0 || hfn_text_is(text, "<absolute>")) {
        return HOTFN_OK; /* an absolute value */
    }
    status = add_segments(r, number, row.name);
    if (status != HOTFN_OK) {
        return status;
    }
    if (!place_segment(r, number, offset, row.address)) {
        hfn_map_count_fault(r->map, &r->map->contradicting);
        return HOTFN_OK;
    }
    r->has_function_flags |= function;
    row.kind = kind_of(r, number, offset, function, text);
    if (hfn_text_is(text, "<linker-defined>") && !function) {
        row.kind = HOTFN_SYMBOL_DATA; /* a symbol of the linker, not code */
        row.flags |= HFN_SYMBOL_LINKER_DEFINED;
        text.at = text.end;
    }
    status = hfn_map_set_module(r->map, text);
    return status == HOTFN_OK ? hfn_map_add_row(r->map, &row, &r->map->sections[number - 1])
                              : status;
}

/* Reads ` 12 0001:00000000    13 0001:0000000c`: lines of the file that was named last. */
static hotfn_status read_lines(reader *r, hfn_text text)
{
    uint64_t line, number, offset;
    hotfn_status status = HOTFN_OK;

    while (status == HOTFN_OK && text.at < text.end) {
        if (!hfn_text_take_decimal(&text, &line) || !hfn_text_take_blanks(&text) ||
            !take_place(&text, &number, &offset) || line == 0 || line > UINT32_MAX) {
            hfn_map_count_fault(r->map, &r->map->unknown);
            return HOTFN_OK;
        }
        if (number == 0 || number > r->map->section_count ||
            r->map->sections[number - 1].flags & HFN_MAP_UNLOADED) {
            /* No public symbol gave the address of that segment. */
            hfn_map_count_fault(r->map, &r->map->stray);
            return HOTFN_OK;
        }
        status =
            hfn_map_add_line(r->map, r->map->sections[number - 1].address + offset, (uint32_t)line);
    }
    return status;
}

/* Reads `a.obj(C:\game\a.c) segment .text`, which names the source file of the following lines. */
static hotfn_status begin_lines(reader *r, hfn_text text)
{
    const char *begin = hfn_text_find(text, ".obj("), *end = NULL;
    hfn_text rest = text;

    begin = begin ? begin + 4 : hfn_text_find(text, "(");
    while ((rest.at = hfn_text_find(rest, ") segment ")) != NULL) {
        end = rest.at++; /* the last one: a path may hold anything */
    }
    if (!begin || !end || begin + 1 >= end) {
        r->part = PART_OTHER;
        hfn_map_count_fault(r->map, &r->map->unknown);
        return HOTFN_OK;
    }
    r->part = PART_LINES;
    return hfn_map_set_file(r->map, (hfn_text){ begin + 1, end });
}

/* Reads a line that begins a part of the map; false if it does not. */
static bool read_heading(reader *r, hfn_text text, hotfn_status *status)
{
    hfn_linker_map *map = r->map;
    uint64_t value = 0;

    if (hfn_text_take(&text, "Timestamp is ") && hfn_text_take_hex(&text, &value)) {
        map->timestamp = (uint32_t)value;
        map->has_timestamp = true;
    } else if (hfn_text_take(&text, "Preferred load address is ") &&
               hfn_text_take_hex(&text, &map->base)) {
        map->has_base = true;
        r->count = 0; /* a second map in the same file */
        r->part = PART_GROUPS;
        r->statics = false;
    } else if (hfn_text_take(&text, "entry point at")) {
        hfn_text_take_blanks(&text);
        r->has_entry = take_place(&text, &r->entry_segment, &r->entry_offset);
    } else if (hfn_text_begins(text, "Address         Publics by Value")) {
        r->part = PART_ROWS;
        r->statics = false;
    } else if (hfn_text_is(text, "Static symbols")) {
        r->part = PART_ROWS;
        r->statics = true;
    } else if (hfn_text_take(&text, "Line numbers for ")) {
        *status = begin_lines(r, text);
    } else if (hfn_text_is(text, "Exports") || hfn_text_begins(text, "FIXUPS: ")) {
        r->part = PART_OTHER; /* its rows have no addresses of symbols */
    } else {
        return false;
    }
    return true;
}

static hotfn_status read_line(reader *r, hfn_text line)
{
    hotfn_status status = HOTFN_OK;
    uint64_t number, offset;

    /* A line without leading blanks is the heading of a line table, or the title of the map. */
    if ((hfn_text_take_blanks(&line) == 0 && !hfn_text_begins(line, "Line numbers for ")) ||
        line.at == line.end) {
        return HOTFN_OK;
    }
    if (r->part != PART_OTHER && take_place(&line, &number, &offset)) {
        return r->part == PART_ROWS ? read_row(r, number, offset, line)
                                    : read_group(r, number, offset, line);
    }
    if (read_heading(r, line, &status) || r->part == PART_OTHER || r->part == PART_GROUPS) {
        return status;
    }
    if (r->part == PART_LINES) {
        return read_lines(r, line);
    }
    hfn_map_count_fault(r->map, &r->map->unknown);
    return HOTFN_OK;
}

/* lld writes no 'f' flags: in a map without any, all symbols in code are functions. */
static void resolve_kinds(const reader *r)
{
    hfn_symbol_table *table = &r->map->symbols->table;

    for (uint32_t i = 0; !r->has_function_flags && i < table->count; i++) {
        if (table->items[i].kind == HOTFN_SYMBOL_LABEL) {
            table->items[i].kind = HOTFN_SYMBOL_FUNCTION;
        }
    }
}

static void resolve_entry(const reader *r)
{
    hfn_linker_map *map = r->map;

    if (!r->has_entry || r->entry_segment == 0 || r->entry_segment > map->section_count ||
        map->sections[r->entry_segment - 1].flags & HFN_MAP_UNLOADED) {
        return;
    }
    map->entry = map->sections[r->entry_segment - 1].address + r->entry_offset;
    map->has_entry = true;
}

static hotfn_status add_pieces(const reader *r)
{
    hotfn_status status = HOTFN_OK;

    for (size_t i = 0; status == HOTFN_OK && i < r->count; i++) {
        const group *g = &r->groups[i];
        const hfn_map_section *s = &r->map->sections[g->segment - 1];
        if (!(s->flags & HFN_MAP_UNLOADED)) {
            status = hfn_map_add_piece(r->map, s->address + g->offset, g->byte_count, s);
        }
    }
    return status;
}

hotfn_status hfn_map_read_msvc(hfn_linker_map *map)
{
    reader r = { .map = map };
    hotfn_status status = HOTFN_OK;
    hfn_text line;

    map->image_format = HOTFN_FORMAT_PE;
    map->by_number = true;
    while (status == HOTFN_OK && hfn_map_next_line(&map->lines, &line)) {
        status = read_line(&r, line);
    }
    if (status == HOTFN_OK) {
        status = map->lines.status;
    }
    if (status == HOTFN_OK) {
        status = add_pieces(&r);
    }
    resolve_kinds(&r);
    resolve_entry(&r);
    hfn_free_memory(&map->symbols->table.env, r.groups, r.capacity * sizeof *r.groups);
    return status;
}
