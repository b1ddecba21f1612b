/* SPDX-License-Identifier: MIT */
/*
 * Maps of Apple's ld64 and of ld64.lld: parts that begin with `# Name:`, with columns separated by
 * tabs. Symbols are `address size [file] name`; ld64.lld before LLVM 15 omits the size. Rows of
 * string literals, unwind data and pointer tables are skipped. Source: the man page ld(1), -map;
 * the rest was derived from the output of both linkers.
 */
#include "symbols/map.h"

#include <string.h>

enum { MAX_SECTIONS = 255 }; /* Mach-O's own bound: n_sect is one byte */
enum { PART_NONE, PART_FILES, PART_SECTIONS, PART_SYMBOLS, PART_DEAD };

typedef struct reader {
    hfn_linker_map *map;
    uint32_t *files; /* module numbers by file number */
    size_t capacity, count;
    const hfn_map_section *last;
    int part;
    bool has_sizes;
} reader;

static const struct {
    const char *name;
    uint32_t machine;
} machines[] = { { "x86_64h", HOTFN_MACHINE_X86_64 },
                 { "x86_64", HOTFN_MACHINE_X86_64 },
                 { "i386", HOTFN_MACHINE_X86 },
                 { "arm64", HOTFN_MACHINE_ARM64 },
                 { "arm", HOTFN_MACHINE_ARM } };

static void read_arch(hfn_linker_map *map, hfn_text name)
{
    for (size_t i = HFN_COUNT_OF(machines); i-- > 0;) {
        if (hfn_text_begins(name, machines[i].name)) {
            map->machine = machines[i].machine;
        }
    }
    if (hfn_text_begins(name, "arm64")) { /* must be tested before "arm" */
        map->machine = HOTFN_MACHINE_ARM64;
    }
}

static void read_heading(reader *r, hfn_text line)
{
    hfn_text_take(&line, "# ");
    if (hfn_text_take(&line, "Arch: ")) {
        read_arch(r->map, line);
    } else if (hfn_text_begins(line, "Object files:")) {
        r->part = PART_FILES, r->count = 0;
    } else if (hfn_text_begins(line, "Sections:")) {
        r->part = PART_SECTIONS;
    } else if (hfn_text_begins(line, "Symbols:")) {
        r->part = PART_SYMBOLS;
    } else if (hfn_text_begins(line, "Dead Stripped Symbols:")) {
        r->part = PART_DEAD;
    } else if (hfn_text_begins(line, "Address") && r->part == PART_SYMBOLS) {
        r->has_sizes = hfn_text_find(line, "Size") != NULL;
    } else if (hfn_text_begins(line, "Path: ")) {
        r->part = PART_NONE;
    }
}

/* Reads `[  1] ` and advances *text to the name behind it. */
static bool take_file_number(hfn_text *text, uint64_t *number)
{
    hfn_text rest = *text;

    if (!hfn_text_take(&rest, "[")) {
        return false;
    }
    hfn_text_take_blanks(&rest);
    if (!hfn_text_take_decimal(&rest, number) || !hfn_text_take(&rest, "] ")) {
        return false;
    }
    *text = rest;
    return true;
}

/* Adds a file. Files are numbered from 0 without gaps. */
static hotfn_status read_file(reader *r, hfn_text line)
{
    hotfn_status status;
    uint64_t number;

    if (!take_file_number(&line, &number) || number != r->count) {
        hfn_map_count_fault(r->map, &r->map->unknown);
        return HOTFN_OK;
    }
    if (hfn_text_is(line, "linker synthesized")) {
        line.at = line.end;
    }
    status = hfn_map_set_module(r->map, line);
    if (status != HOTFN_OK) {
        return status;
    }
    if (!hfn_grow_array(&r->map->symbols->table.env, (void **)&r->files, &r->capacity, r->count + 1,
                        sizeof *r->files)) {
        return hfn_report_no_memory(r->map->err, r->map->lines.path);
    }
    r->files[r->count++] = r->map->module;
    return HOTFN_OK;
}

static bool is_among(hfn_text name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (hfn_text_is(name, names[i])) {
            return true;
        }
    }
    return false;
}

static uint32_t flags_of(hfn_text segment, hfn_text name)
{
    static const char *const code[] = { "__text", "__StaticInit", "__textcoal_nt" };
    static const char *const stubs[] = { "__stubs",       "__stub_helper",  "__auth_stubs",
                                         "__symbol_stub", "__symbol_stub1", "__picsymbolstub1" };
    static const char *const none[] = { "__cstring",       "__ustring",        "__eh_frame",
                                        "__unwind_info",   "__gcc_except_tab", "__got",
                                        "__auth_got",      "__nl_symbol_ptr",  "__la_symbol_ptr",
                                        "__cfstring",      "__objc_methname",  "__objc_classname",
                                        "__objc_methtype", "__literal4",       "__literal8",
                                        "__literal16" };

    if (is_among(name, stubs, HFN_COUNT_OF(stubs))) {
        return HFN_MAP_CODE | HFN_MAP_STUBS;
    }
    if (is_among(name, none, HFN_COUNT_OF(none)) || hfn_text_is(segment, "__LINKEDIT")) {
        return HFN_MAP_UNLOADED;
    }
    if (hfn_text_begins(name, "__thread_")) {
        return HFN_MAP_THREAD;
    }
    return is_among(name, code, HFN_COUNT_OF(code)) ? HFN_MAP_CODE : 0;
}

static hotfn_status read_section(reader *r, hfn_text line)
{
    uint64_t address, byte_count;
    hfn_text segment;

    if (!hfn_text_take_0x(&line, &address) || !hfn_text_take_blanks(&line) ||
        !hfn_text_take_0x(&line, &byte_count) || !hfn_text_take_blanks(&line)) {
        hfn_map_count_fault(r->map, &r->map->unknown);
        return HOTFN_OK;
    }
    segment = hfn_text_take_word(&line);
    hfn_text_take_blanks(&line);
    for (uint32_t i = 0; i < r->map->section_count; i++) {
        if (r->map->sections[i].address == address &&
            r->map->sections[i].byte_count == byte_count) {
            return HOTFN_OK; /* already known */
        }
    }
    if (r->map->section_count == MAX_SECTIONS) {
        hfn_map_count_fault(r->map, &r->map->contradicting);
        return HOTFN_OK;
    }
    r->last = NULL; /* the table may move */
    return hfn_map_add_section(r->map, line, address, byte_count, flags_of(segment, line));
}

/* The end is excluded: the next section may begin there. */
static bool section_contains(const hfn_map_section *s, uint64_t address)
{
    return address >= s->address && address - s->address < s->byte_count;
}

static const hfn_map_section *section_of(reader *r, uint64_t address)
{
    if (r->last && section_contains(r->last, address)) {
        return r->last;
    }
    for (uint32_t i = 0; i < r->map->section_count; i++) {
        if (section_contains(&r->map->sections[i], address)) {
            return r->last = &r->map->sections[i];
        }
    }
    return NULL;
}

/* ltmp0, ltmp1 ...: the assembler's own symbols at the beginning of an object's part of a
 * section. */
static bool is_temporary(hfn_text name)
{
    uint64_t number;

    return hfn_text_take(&name, "ltmp") && hfn_text_take_decimal(&name, &number) &&
           name.at == name.end;
}

static hotfn_status read_symbol(reader *r, hfn_text line)
{
    hfn_map_row row = { .kind = 0 };
    const hfn_map_section *section;
    uint64_t number;

    if (!hfn_text_take_0x(&line, &row.address) ||
        (r->has_sizes &&
         (!hfn_text_take_blanks(&line) || !hfn_text_take_0x(&line, &row.byte_count))) ||
        !hfn_text_take_blanks(&line) || !take_file_number(&line, &number) || number >= r->count ||
        line.at == line.end) {
        hfn_map_count_fault(r->map, &r->map->unknown);
        return HOTFN_OK;
    }
    if (is_temporary(line)) {
        return HOTFN_OK;
    }
    row.name = line;
    section = section_of(r, row.address);
    if (!section) {
        hfn_map_count_fault(r->map, &r->map->stray);
        return HOTFN_OK;
    }
    r->map->module = r->files[number];
    return hfn_map_add_row(r->map, &row, section);
}

static hotfn_status read_line(reader *r, hfn_text line)
{
    if (line.at == line.end) {
        return HOTFN_OK;
    }
    if (*line.at == '#') {
        read_heading(r, line);
        return HOTFN_OK;
    }
    switch (r->part) {
    case PART_FILES: return read_file(r, line);
    case PART_SECTIONS: return read_section(r, line);
    case PART_SYMBOLS: return read_symbol(r, line);
    case PART_DEAD: return HOTFN_OK; /* not linked into the program */
    default: hfn_map_count_fault(r->map, &r->map->unknown); return HOTFN_OK;
    }
}

/* The first 4 GiB of a program (32-bit: a page or four) are unmapped; a library begins at 0. */
static void find_base(hfn_linker_map *map)
{
    uint64_t lowest = UINT64_MAX;
    bool wide = map->machine == HOTFN_MACHINE_X86_64 || map->machine == HOTFN_MACHINE_ARM64;

    for (uint32_t i = 0; i < map->section_count; i++) {
        if (map->sections[i].address < lowest) {
            lowest = map->sections[i].address;
        }
    }
    map->has_base = map->section_count > 0;
    if (map->has_base) {
        map->base = wide ? lowest & ~(uint64_t)UINT32_MAX : lowest & ~(uint64_t)0xfff;
    }
}

hotfn_status hfn_map_read_apple(hfn_linker_map *map)
{
    reader r = { .map = map };
    hotfn_status status = HOTFN_OK;
    hfn_text line;

    map->is_macho = true;
    while (status == HOTFN_OK && hfn_map_next_line(&map->lines, &line)) {
        status = read_line(&r, line);
    }
    find_base(map);
    hfn_free_memory(&map->symbols->table.env, r.files, r.capacity * sizeof *r.files);
    return status == HOTFN_OK ? map->lines.status : status;
}
