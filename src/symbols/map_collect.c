/* SPDX-License-Identifier: MIT */
/* Stores what the readers of maps find. Names are copied, because those in a map are not followed
 * by a NUL; the name of an object file is copied only once if the next use of it follows soon. */
#include "symbols/map.h"

#include <string.h>

static hotfn_status no_memory(const hfn_linker_map *map)
{
    return hfn_report_no_memory(map->err, map->lines.path);
}

void hfn_map_count_fault(hfn_linker_map *map, hfn_map_fault *fault)
{
    if (fault->count++ == 0) {
        fault->first_line = map->lines.number;
    }
}

static bool is_plt(hfn_text name)
{
    return hfn_text_begins(name, ".plt") || hfn_text_begins(name, ".iplt");
}

/* Sections that are not loaded: debug data, and data for linkers and similar tools. */
static bool is_unloaded(hfn_text name)
{
    static const char *const names[] = { ".comment",  ".symtab",         ".strtab",
                                         ".shstrtab", ".gnu_debug",      ".note.gnu.gold-version",
                                         ".debug",    ".stab",           ".gnu.build.attributes",
                                         ".zdebug",   ".ARM.attributes", ".line" };

    for (size_t i = 0; i < HFN_COUNT_OF(names); i++) {
        if (hfn_text_begins(name, names[i])) {
            return true;
        }
    }
    return false;
}

uint32_t hfn_map_flags_of(hfn_text name)
{
    if (is_plt(name)) {
        return HFN_MAP_CODE | HFN_MAP_STUBS;
    }
    if (hfn_text_begins(name, ".text") || hfn_text_is(name, ".init") ||
        hfn_text_is(name, ".fini")) {
        return HFN_MAP_CODE;
    }
    if (hfn_text_begins(name, ".tdata") || hfn_text_begins(name, ".tbss")) {
        return HFN_MAP_THREAD;
    }
    return is_unloaded(name) ? HFN_MAP_UNLOADED : 0;
}

hfn_map_section *hfn_map_last_section(hfn_linker_map *map)
{
    return map->section_count ? &map->sections[map->section_count - 1] : NULL;
}

hotfn_status hfn_map_add_section(hfn_linker_map *map, hfn_text name, uint64_t address,
                                 uint64_t byte_count, uint32_t flags)
{
    if (map->section_count == UINT32_MAX - 1 ||
        !hfn_grow_array(&map->symbols->table.env, (void **)&map->sections, &map->section_capacity,
                        (size_t)map->section_count + 1, sizeof *map->sections)) {
        return no_memory(map);
    }
    if (byte_count > UINT64_MAX - address) {
        hfn_map_count_fault(map, &map->contradicting);
        byte_count = 0;
    }
    map->sections[map->section_count++] =
        (hfn_map_section){ address, byte_count, name, map->lines.number, flags };
    return HOTFN_OK;
}

static uint8_t kind_in(const hfn_map_section *section)
{
    if (!section || !(section->flags & HFN_MAP_CODE)) {
        return HOTFN_SYMBOL_DATA;
    }
    return section->flags & HFN_MAP_STUBS ? HOTFN_SYMBOL_THUNK : HOTFN_SYMBOL_FUNCTION;
}

hotfn_status hfn_map_add_piece(hfn_linker_map *map, uint64_t address, uint64_t byte_count,
                               const hfn_map_section *section)
{
    if (byte_count == 0 || byte_count > UINT64_MAX - address) {
        return HOTFN_OK;
    }
    if (section && (hfn_text_is(section->name, ".init") || hfn_text_is(section->name, ".fini"))) {
        return HOTFN_OK; /* a single function, assembled from pieces of several objects */
    }
    if (map->pieces.count == UINT32_MAX - 1 ||
        !hfn_grow_array(&map->symbols->table.env, (void **)&map->pieces.items,
                        &map->pieces.capacity, (size_t)map->pieces.count + 1,
                        sizeof *map->pieces.items)) {
        return no_memory(map);
    }
    map->pieces.items[map->pieces.count++] =
        (hfn_map_piece){ address, address + byte_count,
                         kind_in(section) == HOTFN_SYMBOL_DATA ? 0 : map->lines.number };
    return HOTFN_OK;
}

/* Copies the name.  NULL if there is no memory, or if it contains a NUL, which no linker writes. */
static const char *copy_name(hfn_linker_map *map, hfn_text name, hotfn_status *status)
{
    const char *copy;

    if (memchr(name.at, 0, hfn_text_length(name))) {
        *status = hfn_map_fail(&map->lines, "contains a NUL byte: this is not a text file");
        return NULL;
    }
    copy = hfn_arena_copy(&map->symbols->table.names, name.at, hfn_text_length(name));
    if (!copy) {
        *status = no_memory(map);
    }
    return copy;
}

static size_t hash_name(hfn_text name)
{
    uint32_t value = 2166136261u; /* FNV-1a of the tail: folders are alike */
    const char *from = hfn_text_length(name) > 24 ? name.end - 24 : name.at;

    for (const char *at = from; at < name.end; at++) {
        value = (value ^ (uint8_t)*at) * 16777619u;
    }
    return (value ^ value >> 16) % HFN_MAP_MODULE_CACHE;
}

static bool equals_text(hfn_text a, hfn_text b)
{
    return hfn_text_length(a) == hfn_text_length(b) &&
           (a.at == b.at || memcmp(a.at, b.at, hfn_text_length(a)) == 0);
}

hotfn_status hfn_map_set_module(hfn_linker_map *map, hfn_text name)
{
    hotfn_status status = HOTFN_OK;
    const char *copy;
    size_t place;

    map->module = 0;
    if (hfn_text_length(name) == 0) {
        return HOTFN_OK;
    }
    place = hash_name(name);
    if (map->cache[place].number == 0 || !equals_text(map->cache[place].name, name)) {
        copy = copy_name(map, name, &status);
        if (!copy) {
            return status;
        }
        map->cache[place].number = hfn_symbol_table_module(&map->symbols->table, copy);
        if (map->cache[place].number == 0) {
            return no_memory(map);
        }
        map->cache[place].name = name;
    }
    map->module = map->cache[place].number;
    return HOTFN_OK;
}

/* The cache entry for rows like this one. lld-link writes a symbol once for each object that has
 * it; detecting that here is cheaper than removing the duplicates after sorting. */
static uint32_t *recent_entry(hfn_linker_map *map, const hfn_map_row *row)
{
    uint64_t key = row->address * 0x9e3779b97f4a7c15u + hfn_text_length(row->name);

    if (row->name.end > row->name.at) {
        key += (uint64_t)(uint8_t)row->name.end[-1] << 32;
    }
    return &map->recent[(key * 0x9e3779b97f4a7c15u) >> 48];
}

static bool is_duplicate(const hfn_linker_map *map, const hfn_map_row *row, uint32_t number,
                         uint8_t kind)
{
    const hfn_symbol *s = &map->symbols->table.items[number - 1];
    size_t length = hfn_text_length(row->name);

    return s->rva == row->address && s->kind == kind && s->flags == row->flags &&
           s->byte_count == row->byte_count && strlen(s->name) == length &&
           memcmp(s->name, row->name.at, length) == 0;
}

hotfn_status hfn_map_add_row(hfn_linker_map *map, const hfn_map_row *row,
                             const hfn_map_section *section)
{
    uint32_t *recent = recent_entry(map, row);
    hfn_symbol s = { .rva = row->address, .byte_count = row->byte_count, .flags = row->flags };
    hotfn_status status = HOTFN_OK;

    if (section && (section->flags & (HFN_MAP_THREAD | HFN_MAP_UNLOADED))) {
        return HOTFN_OK;
    }
    if (section && (row->address < section->address ||
                    row->address - section->address > section->byte_count)) {
        hfn_map_count_fault(map, &map->stray);
        return HOTFN_OK;
    }
    s.kind = row->kind ? row->kind : kind_in(section);
    if (*recent && is_duplicate(map, row, *recent, s.kind)) {
        return HOTFN_OK;
    }
    s.name = copy_name(map, row->name, &status);
    if (!s.name) {
        return status;
    }
    s.source = HOTFN_SOURCE_MAP;
    s.module = map->module;
    if (!hfn_symbol_table_add(&map->symbols->table, &s)) {
        return no_memory(map);
    }
    *recent = map->symbols->table.count;
    return HOTFN_OK;
}

/* The name in "name = ." or "PROVIDE (name = .)".  Empty if there is none, or if the value is a
 * number rather than an address. */
static hfn_text assigned_name(hfn_text text)
{
    static const char *const wraps[] = { "PROVIDE_HIDDEN (", "PROVIDE (", "HIDDEN (" };
    hfn_text none = { text.at, text.at }, name;

    for (size_t i = 0; i < HFN_COUNT_OF(wraps); i++) {
        if (hfn_text_take(&text, wraps[i])) {
            break;
        }
    }
    name = hfn_text_take_word(&text);
    if (!hfn_text_take(&text, " = ") || hfn_text_is(name, ".") ||
        (text.at < text.end && *text.at >= '0' && *text.at <= '9')) {
        return none;
    }
    return name;
}

hotfn_status hfn_map_add_assignment(hfn_linker_map *map, uint64_t address, hfn_text text)
{
    hfn_map_row row = { assigned_name(text), address, 0, HOTFN_SYMBOL_DATA,
                        HOTFN_SYMBOL_GLOBAL | HFN_SYMBOL_LINKER_DEFINED };
    uint32_t module = map->module;
    hotfn_status status;

    if (hfn_text_length(row.name) == 0) {
        return HOTFN_OK;
    }
    map->module = 0;
    status = hfn_map_add_row(map, &row, NULL);
    map->module = module;
    return status;
}

hotfn_status hfn_map_set_file(hfn_linker_map *map, hfn_text name)
{
    hotfn_status status = HOTFN_OK;
    const char *copy = copy_name(map, name, &status);

    if (!copy) {
        return status;
    }
    if (!map->source_lines) {
        map->source_lines = hfn_map_lines_new(&map->symbols->table);
        map->symbols->lines =
            (hfn_line_source){ hfn_map_lines_find, hfn_map_lines_destroy, map->source_lines };
    }
    return map->source_lines && hfn_map_lines_file(map->source_lines, copy) ? HOTFN_OK
                                                                            : no_memory(map);
}

hotfn_status hfn_map_add_line(hfn_linker_map *map, uint64_t address, uint32_t line)
{
    return hfn_map_lines_add(map->source_lines, address, line) ? HOTFN_OK : no_memory(map);
}
