/* SPDX-License-Identifier: MIT */
/*
 * Maps of GNU ld and gold, which begin behind the line 'Linker script and memory map' or 'Memory
 * map'. The margin determines the kind of a line:
 * - no blank: an output section;
 * - one blank: an input section, `name address size object`;
 * - sixteen blanks: a continuation of the line above (its numbers, if its name was too long), a
 *   symbol, or an assignment of the linker script.
 * The maps list only global symbols and have no sizes. Source: binutils' manual, ld -Map; the rest
 * was derived from the output of both linkers.
 */
#include "symbols/map.h"

#include <string.h>

static const char margin[] = "                "; /* 16 blanks */

enum { PENDING_NONE, PENDING_OUT, PENDING_IN };

typedef struct reader {
    hfn_linker_map *map;
    bool in_map; /* the heading has been read */
    int pending; /* a name was read whose numbers are in the next line */
    hfn_text name;
} reader;

/* ld translates its headings to the user's language, but not LOAD. */
static bool begins_map(hfn_text line)
{
    return hfn_text_is(line, "Linker script and memory map") || hfn_text_is(line, "Memory map") ||
           hfn_text_begins(line, "LOAD ");
}

/* Reads ` 0xADDRESS 0xSIZE` and advances *text. */
static bool take_numbers(hfn_text *text, uint64_t *address, uint64_t *byte_count)
{
    hfn_text rest = *text;

    hfn_text_take_blanks(&rest);
    if (!hfn_text_take_0x(&rest, address) || !hfn_text_take_blanks(&rest) ||
        !hfn_text_take_0x(&rest, byte_count)) {
        return false;
    }
    *text = rest;
    return true;
}

static hotfn_status add_out(reader *r, hfn_text name, hfn_text text)
{
    uint64_t address, byte_count;

    r->map->module = 0;
    if (!take_numbers(&text, &address, &byte_count)) {
        hfn_map_count_fault(r->map, &r->map->unknown);
        return HOTFN_OK;
    }
    return hfn_map_add_section(r->map, name, address, byte_count, hfn_map_flags_of(name));
}

static hotfn_status add_in(reader *r, hfn_text text)
{
    const hfn_map_section *section = hfn_map_last_section(r->map);
    uint64_t address, byte_count;
    hotfn_status status;

    if (!take_numbers(&text, &address, &byte_count)) {
        hfn_map_count_fault(r->map, &r->map->unknown);
        return HOTFN_OK;
    }
    hfn_text_take_blanks(&text);
    status = hfn_map_set_module(r->map, text);
    if (status != HOTFN_OK || !section || section->flags & (HFN_MAP_THREAD | HFN_MAP_UNLOADED)) {
        return status;
    }
    return hfn_map_add_piece(r->map, address, byte_count, section);
}

/* Lines of an input statement that are not sections: patterns, fillers of gaps, gold's own
 * parts. */
static bool is_pattern(hfn_text text)
{
    hfn_text first = hfn_text_take_word(&text);

    return *first.at == '*' || memchr(first.at, '(', hfn_text_length(first)) ||
           (hfn_text_length(text) > 1 && text.at[1] == '(');
}

static hotfn_status read_in(reader *r, hfn_text text)
{
    hfn_text name;

    r->pending = PENDING_NONE;
    if (is_pattern(text)) {
        return HOTFN_OK;
    }
    name = hfn_text_take_word(&text);
    if (text.at == text.end) {
        r->pending = PENDING_IN;
        r->name = name;
        return HOTFN_OK;
    }
    return add_in(r, text);
}

static bool is_ignored(hfn_text line)
{
    static const char *const words[] = {
        "LOAD ",   "START GROUP", "END GROUP",           "/DISCARD/",
        "TARGET(", "OUTPUT_ARCH", "Address of section ", "OVERLAY"
    };

    for (size_t i = 0; i < HFN_COUNT_OF(words); i++) {
        if (hfn_text_begins(line, words[i])) {
            return true;
        }
    }
    return false;
}

/* OUTPUT(game elf64-x86-64) */
static void read_output(hfn_linker_map *map, hfn_text line)
{
    static const struct {
        const char *target;
        uint32_t machine, format;
    } targets[] = {
        { " elf64-x86-64)", HOTFN_MACHINE_X86_64, HOTFN_FORMAT_ELF },
        { " elf32-i386)", HOTFN_MACHINE_X86, HOTFN_FORMAT_ELF },
        { " elf64-littleaarch64)", HOTFN_MACHINE_ARM64, HOTFN_FORMAT_ELF },
        { " elf32-littlearm)", HOTFN_MACHINE_ARM, HOTFN_FORMAT_ELF },
        { " pei-x86-64)", HOTFN_MACHINE_X86_64, HOTFN_FORMAT_PE },
        { " pei-i386)", HOTFN_MACHINE_X86, HOTFN_FORMAT_PE },
        { " pei-aarch64-little)", HOTFN_MACHINE_ARM64, HOTFN_FORMAT_PE },
    };

    for (size_t i = 0; i < HFN_COUNT_OF(targets); i++) {
        if (hfn_text_ends(line, targets[i].target)) {
            map->machine = targets[i].machine;
            map->image_format = targets[i].format;
        }
    }
}

static hotfn_status read_out(reader *r, hfn_text line)
{
    hfn_text name, whole = line;

    r->pending = PENDING_NONE;
    if (hfn_text_begins(line, "OUTPUT(")) {
        read_output(r->map, line);
        r->in_map = false; /* cross references follow */
        return HOTFN_OK;
    }
    if (hfn_text_is(line, "Cross Reference Table")) {
        r->in_map = false;
        return HOTFN_OK;
    }
    if (begins_map(line) || is_ignored(line)) {
        return HOTFN_OK;
    }
    name = hfn_text_take_word(&line);
    if (line.at == line.end) {
        r->pending = PENDING_OUT;
        r->name = whole;
        return HOTFN_OK;
    }
    return add_out(r, name, line);
}

/* Sets the image base if this line of the script shows it. */
static void find_base_in_script(hfn_linker_map *map, uint64_t address, hfn_text text)
{
    if (hfn_text_begins(text, "__image_base__ = ")) {
        map->base = address;
        map->has_base = true;
        map->image_format = HOTFN_FORMAT_PE;
    } else if (hfn_text_find(text, "SEGMENT_START (\"text-segment\"")) {
        map->base = address & ~(uint64_t)0xfff;
        map->has_base = true;
    }
}

static bool is_assignment(hfn_text text)
{
    hfn_text_take_word(&text);
    return hfn_text_begins(text, " = ") || hfn_text_begins(text, " (");
}

static hotfn_status read_name(reader *r, uint64_t address, hfn_text text)
{
    static const char *const calls[] = { "PROVIDE", "HIDDEN", "ASSERT" };
    hfn_map_row row = { .name = text, .address = address, .flags = HOTFN_SYMBOL_GLOBAL };
    const hfn_map_section *section = hfn_map_last_section(r->map);
    bool script = is_assignment(text);

    if (script && hfn_text_find(text, " = ") == NULL) { /* `name (...)`: a call or a C++ name */
        script = false;
        for (size_t i = 0; i < HFN_COUNT_OF(calls); i++) {
            script |= hfn_text_begins(text, calls[i]);
        }
    }
    if (script) {
        find_base_in_script(r->map, address, text);
        return hfn_map_add_assignment(r->map, address, text);
    }
    if (!section) {
        hfn_map_count_fault(r->map, &r->map->stray);
        return HOTFN_OK;
    }
    return hfn_map_add_row(r->map, &row, section);
}

/* Reads a line with the margin: numbers of the line above, a symbol, or an assignment. */
static hotfn_status read_after_margin(reader *r, hfn_text text)
{
    int pending = r->pending;
    hfn_text numbers = text;
    uint64_t address;

    r->pending = PENDING_NONE;
    if (*text.at == '[' || *text.at == ' ' || *text.at == '*') {
        return HOTFN_OK; /* not provided, undefined, or a size before relaxing */
    }
    if (!hfn_text_take_0x(&text, &address)) {
        hfn_map_count_fault(r->map, &r->map->unknown);
        return HOTFN_OK;
    }
    if (hfn_text_take_blanks(&text) >= sizeof margin - 1 && text.at < text.end) {
        return read_name(r, address, text); /* addresses of 8 digits are followed by more blanks */
    }
    if (pending == PENDING_OUT) {
        return add_out(r, r->name, numbers);
    }
    if (pending == PENDING_IN) {
        return add_in(r, numbers);
    }
    /* Data from a script: `0xADDRESS 0x4 LONG 0x0`; gold's own parts with long names. */
    return HOTFN_OK;
}

static hotfn_status read_line(reader *r, hfn_text line)
{
    if (!r->in_map) {
        r->in_map = begins_map(line);
        return HOTFN_OK;
    }
    if (line.at == line.end) {
        r->pending = PENDING_NONE;
        return HOTFN_OK;
    }
    if (*line.at != ' ') {
        return read_out(r, line);
    }
    if (hfn_text_take(&line, margin)) {
        return read_after_margin(r, line);
    }
    line.at++;
    if (*line.at != ' ') {
        return read_in(r, line);
    }
    hfn_map_count_fault(r->map, &r->map->unknown);
    return HOTFN_OK;
}

/* If the script does not show the base, uses the page of the first loaded section. */
static void find_base(hfn_linker_map *map)
{
    uint64_t lowest = UINT64_MAX;

    for (uint32_t i = 0; i < map->section_count; i++) {
        const hfn_map_section *s = &map->sections[i];
        if (!(s->flags & HFN_MAP_UNLOADED) && s->address < lowest &&
            (s->address || s->byte_count)) {
            lowest = s->address;
        }
    }
    if (map->has_base || lowest == UINT64_MAX) {
        return;
    }
    map->base = lowest & ~(uint64_t)0xfff;
    map->has_base = true;
}

hotfn_status hfn_map_read_gnu(hfn_linker_map *map)
{
    reader r = { .map = map };
    hotfn_status status = HOTFN_OK;
    hfn_text line;

    while (status == HOTFN_OK && hfn_map_next_line(&map->lines, &line)) {
        status = read_line(&r, line);
    }
    find_base(map);
    return status == HOTFN_OK ? map->lines.status : status;
}
