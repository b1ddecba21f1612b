/* SPDX-License-Identifier: MIT */
/*
 * Converts the rows of a map to symbols.  Addresses become RVAs, and kinds follow the sections of
 * the image if there is one.  A symbol without a size extends to the next symbol, but not beyond
 * the piece of its object file, or its section. Such sizes are marked, because unwind data are more
 * reliable (src/functions).
 */
#include "symbols/map.h"

#include "base/sort.h"

#include <inttypes.h>
#include <string.h>

static void warn_fault(const hfn_linker_map *map, const hfn_map_fault *fault, const char *what)
{
    if (fault->count) {
        hfn_log_message(&map->symbols->table.env, HOTFN_LOG_WARNING,
                        "%s: %u lines %s (the first is line %u)", map->lines.path, fault->count,
                        what, fault->first_line);
    }
}

static void warn_faults(const hfn_linker_map *map)
{
    warn_fault(map, &map->unknown, "are not understood and are omitted");
    warn_fault(map, &map->stray, "have an address outside their section and are omitted");
    warn_fault(map, &map->contradicting,
               "contradict other lines about the same section and are omitted");
    warn_fault(map, &map->overlapping,
               "assign the same bytes to two objects; sizes of functions there may be too small");
}

static bool piece_before(const void *left, const void *right)
{
    const hfn_map_piece *a = left, *b = right;

    return a->address < b->address;
}

/* Sorts by address. False if there is no memory. */
static bool sort_ranges(hfn_linker_map *map, hfn_map_pieces *ranges)
{
    return hfn_sort_array(&map->symbols->table.env, (void **)&ranges->items, ranges->capacity,
                          ranges->count, sizeof *ranges->items, piece_before);
}

static void find_overlaps(hfn_linker_map *map)
{
    for (uint32_t i = 1; i < map->pieces.count; i++) {
        const hfn_map_piece *a = &map->pieces.items[i - 1], *b = &map->pieces.items[i];
        bool same = a->address == b->address &&
                    a->end == b->end; /* the same piece twice: two maps in one file */
        if (b->address < a->end && !same && a->line && b->line && map->overlapping.count++ == 0) {
            map->overlapping.first_line = a->line > b->line ? a->line : b->line;
        }
    }
}

/* The base is that of an ELF image; else that of the map; else the page of the lowest section. */
static void find_image_base(hfn_linker_map *map)
{
    hotfn_image_info info = HOTFN_IMAGE_INFO_INIT;
    uint64_t lowest = UINT64_MAX;

    if (map->image && map->image_format == HOTFN_FORMAT_ELF) {
        hotfn_image_get_info(map->image, &info);
        map->base = info.link_base;
        map->has_base = true;
    }
    for (uint32_t i = 0; i < map->section_count; i++) {
        if (!(map->sections[i].flags & HFN_MAP_UNLOADED) && map->sections[i].address < lowest) {
            lowest = map->sections[i].address;
        }
    }
    if (!map->has_base && lowest != UINT64_MAX) {
        map->base = lowest & ~(uint64_t)0xfff;
    }
}

static uint8_t kind_by_image(const hfn_linker_map *map, const hfn_symbol *s)
{
    bool code = hfn_image_is_code(map->image, s->rva);

    if (s->kind == HOTFN_SYMBOL_DATA && code && !(s->flags & HFN_SYMBOL_LINKER_DEFINED)) {
        return HOTFN_SYMBOL_FUNCTION;
    }
    return s->kind != HOTFN_SYMBOL_DATA && !code ? HOTFN_SYMBOL_DATA : s->kind;
}

static void give_size(hfn_symbol *s, uint64_t byte_count)
{
    if (s->byte_count == 0 && !(s->flags & HFN_SYMBOL_LINKER_DEFINED)) {
        s->byte_count = byte_count;
        s->flags |= HOTFN_SYMBOL_SIZE_GUESSED;
    }
    s->flags &= (uint8_t)~HFN_SYMBOL_LINKER_DEFINED;
}

static void make_rvas(hfn_linker_map *map)
{
    hfn_symbol_table *table = &map->symbols->table;
    uint32_t kept = 0;

    table->function_count = 0;
    for (uint32_t i = 0; i < table->count; i++) {
        hfn_symbol s = table->items[i];
        if (s.rva < map->base) {
            continue; /* an absolute value that a script assigned */
        }
        s.rva -= map->base;
        if (map->image) {
            s.kind = kind_by_image(map, &s);
        }
        table->function_count += s.kind == HOTFN_SYMBOL_FUNCTION;
        table->items[kept++] = s;
    }
    table->count = kept;
}

/* Converts the sections to ranges, sorted by address like pieces; sections that are empty, unloaded
 * or thread-local are skipped. */
static bool sort_sections(hfn_linker_map *map, hfn_map_pieces *out)
{
    memset(out, 0, sizeof *out);
    for (uint32_t i = 0; i < map->section_count; i++) {
        const hfn_map_section *s = &map->sections[i];
        if (s->flags & (HFN_MAP_UNLOADED | HFN_MAP_THREAD) || s->byte_count == 0) {
            continue;
        }
        if (!hfn_grow_array(&map->symbols->table.env, (void **)&out->items, &out->capacity,
                            (size_t)out->count + 1, sizeof *out->items)) {
            return false;
        }
        out->items[out->count++] =
            (hfn_map_piece){ s->address, s->address + s->byte_count, s->line };
    }
    return sort_ranges(map, out);
}

/* The end of the range that contains address, 0 if there is none. Addresses must not decrease from
 * call to call. */
static uint64_t end_around(const hfn_map_pieces *ranges, uint32_t *at, uint64_t address)
{
    while (*at < ranges->count && ranges->items[*at].end <= address) {
        (*at)++;
    }
    return *at < ranges->count && ranges->items[*at].address <= address ? ranges->items[*at].end
                                                                        : 0;
}

static void compute_sizes(hfn_linker_map *map, const hfn_map_pieces *sections)
{
    hfn_symbol_table *table = &map->symbols->table;
    uint32_t piece = 0, section = 0;

    for (uint32_t from = 0, to; from < table->count; from = to) {
        uint64_t rva = table->items[from].rva;
        uint64_t end = end_around(&map->pieces, &piece, rva + map->base);
        uint64_t outer = end_around(sections, &section, rva + map->base);
        for (to = from; to < table->count && table->items[to].rva == rva; to++) {
            ;
        }
        end = end ? end : outer ? outer : rva + map->base;
        if (to < table->count && table->items[to].rva + map->base < end) {
            end = table->items[to].rva + map->base;
        }
        for (uint32_t i = from; i < to; i++) {
            give_size(&table->items[i], end - map->base - rva);
        }
    }
}

hotfn_status hfn_map_finish(hfn_linker_map *map)
{
    hfn_map_pieces sections = { NULL, 0, 0 };
    hotfn_status status;
    bool good;

    find_image_base(map);
    good = sort_ranges(map, &map->pieces);
    find_overlaps(map);
    warn_faults(map);
    if (good) {
        status = hfn_map_check(map);
        if (status != HOTFN_OK) {
            return status;
        }
        make_rvas(map);
        good = hfn_symbol_table_sort(&map->symbols->table) && sort_sections(map, &sections) &&
               (!map->source_lines || hfn_map_lines_finish(map->source_lines, map->base));
    }
    if (good) {
        compute_sizes(map, &sections);
    }
    hfn_free_memory(&map->symbols->table.env, sections.items,
                    sections.capacity * sizeof *sections.items);
    if (good) {
        return HOTFN_OK;
    }
    return hfn_report_no_memory(map->err, map->lines.path);
}
