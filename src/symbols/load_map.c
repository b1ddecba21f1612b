/* SPDX-License-Identifier: MIT */
/* hotfn_symbols_load_map: loads the symbols of a linker map, whose kind its first lines show, and
 * checks that it belongs to the image. */
#include "symbols/elf_symtab.h"
#include "symbols/map.h"
#include "symbols/pe_exports.h"

#include <string.h>

enum { MAX_LINES_BEFORE_MARK = 40 };

static const struct {
    const char *begin; /* the beginning of one of the first lines */
    const char *format;
    hfn_map_reader reader;
} marks[] = {
    { "# Path: ", "apple-ld-map", hfn_map_read_apple },
    { "# Arch: ", "apple-ld-map", hfn_map_read_apple },
    { "Preferred load address is ", "msvc-map", hfn_map_read_msvc },
    { "Archive member included ", "gnu-ld-map", hfn_map_read_gnu },
    { "As-needed library included ", "gnu-ld-map", hfn_map_read_gnu },
    { "Merging program properties", "gnu-ld-map", hfn_map_read_gnu },
    { "Allocating common symbols", "gnu-ld-map", hfn_map_read_gnu },
    { "Discarded input sections", "gnu-ld-map", hfn_map_read_gnu },
    { "There are no discarded input sections", "gnu-ld-map", hfn_map_read_gnu },
    { "Memory Configuration", "gnu-ld-map", hfn_map_read_gnu },
    { "Linker script and memory map", "gnu-ld-map", hfn_map_read_gnu },
    { "Memory map", "gnu-ld-map", hfn_map_read_gnu },
    { "LOAD ", "gnu-ld-map", hfn_map_read_gnu },
};

/* The column names of each kind of map, without blanks. */
static const struct {
    const char *words;
    const char *format;
} columns[] = {
    { "VMALMASizeAlignOutInSymbol", "lld-map" },
    { "VMASizeAlignOutInSymbol", "mold-map" },
    { "AddressSizeAlignOutInSymbol", "lldmap" },
};

static const char *format_of_columns(hfn_text line)
{
    char words[64];
    size_t count = 0;

    for (; line.at < line.end && count < sizeof words - 1; line.at++) {
        if (*line.at != ' ') {
            words[count++] = *line.at;
        }
    }
    words[count] = 0;
    for (size_t i = 0; i < HFN_COUNT_OF(columns); i++) {
        if (strcmp(words, columns[i].words) == 0) {
            return columns[i].format;
        }
    }
    return NULL;
}

hfn_map_reader hfn_map_recognise(hfn_span bytes, const char **format)
{
    hfn_map_lines lines;
    hfn_text line;

    if (hfn_map_lines_begin(&lines, bytes, "", NULL, NULL) != HOTFN_OK) {
        return NULL;
    }
    lines.allow_truncated = true;
    for (int i = 0; i < MAX_LINES_BEFORE_MARK && hfn_map_next_line(&lines, &line); i++) {
        hfn_text_take_blanks(&line);
        for (size_t k = 0; k < HFN_COUNT_OF(marks); k++) {
            if (hfn_text_begins(line, marks[k].begin)) {
                *format = marks[k].format;
                return marks[k].reader;
            }
        }
        *format = format_of_columns(line);
        if (*format) {
            return hfn_map_read_lld;
        }
    }
    return NULL;
}

/* Adds the exports of the image, because other modules may call them. */
static hotfn_status read_exports(hfn_linker_map *map)
{
    hfn_symtab_reader reader = { &map->symbols->table, map->image, map->wants_data };
    hotfn_image_info info = HOTFN_IMAGE_INFO_INIT;

    if (!map->image || hotfn_image_get_info(map->image, &info) != HOTFN_OK) {
        return HOTFN_OK;
    }
    if (info.format == HOTFN_FORMAT_PE) {
        return hfn_exports_read(&map->symbols->table, map->image, map->wants_data, map->err);
    }
    return hfn_dynsym_read(&reader, map->err);
}

static void fill_info(hfn_linker_map *map)
{
    hotfn_symbols_info *info = &map->symbols->info;
    hotfn_image_info image = HOTFN_IMAGE_INFO_INIT;

    info->source = HOTFN_SOURCE_MAP;
    info->machine = map->machine;
    info->flags = map->forced ? HOTFN_SYMBOLS_FORCE : 0;
    if (!map->image || hotfn_image_get_info(map->image, &image) != HOTFN_OK) {
        return;
    }
    info->machine = image.machine;
    info->id_kind = image.id_kind;
    info->id_bytes = image.id_bytes;
    memcpy(info->id, image.id, sizeof info->id);
}

static void remove_data(hfn_symbol_table *table)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < table->count; i++) {
        if (table->items[i].kind != HOTFN_SYMBOL_DATA) {
            table->items[kept++] = table->items[i];
        }
    }
    table->count = kept;
}

static hotfn_status read_map(hfn_linker_map *map, hfn_span bytes)
{
    hotfn_symbols *symbols = map->symbols;
    hotfn_status status;
    hfn_map_reader reader;

    status =
        hfn_map_lines_begin(&map->lines, bytes, symbols->info.path, &symbols->table.env, map->err);
    if (status != HOTFN_OK) {
        return status;
    }
    reader = hfn_map_recognise(bytes, &symbols->info.format);
    if (!reader) {
        return hfn_report_error(
            map->err, HOTFN_E_FORMAT, symbols->info.path, 0,
            "no linker map of a known kind (MSVC, lld, GNU ld, gold, mold, ld64)");
    }
    map->lines.allow_truncated = map->forced;
    status = reader(map);
    hfn_progress_end(&map->lines.progress);
    if (status == HOTFN_OK) {
        status = hfn_map_finish(map);
    }
    fill_info(map);
    hfn_free_memory(&symbols->table.env, map->sections,
                    map->section_capacity * sizeof *map->sections);
    hfn_free_memory(&symbols->table.env, map->pieces.items,
                    map->pieces.capacity * sizeof *map->pieces.items);
    if (status == HOTFN_OK && !map->wants_data) {
        remove_data(&symbols->table);
    }
    return status == HOTFN_OK ? read_exports(map) : status;
}

/* bytes: the contents of symbols->file, or memory of the caller. */
static hotfn_status load_map(hotfn_symbols **out, hotfn_symbols *symbols, hfn_span bytes,
                             const hotfn_image *image, uint32_t flags, hotfn_error *err)
{
    hfn_linker_map *map = hfn_allocate_zeroed(&symbols->table.env, sizeof *map);
    hotfn_env env = symbols->table.env;
    hotfn_status status = HOTFN_E_NO_MEMORY;

    if (map) {
        map->symbols = symbols;
        map->image = image;
        map->forced = (flags & HOTFN_SYMBOLS_FORCE) != 0;
        map->wants_data = (flags & HOTFN_SYMBOLS_DATA) != 0;
        map->err = err;
        status = read_map(map, bytes);
    } else {
        hfn_report_error(err, status, symbols->info.path, HOTFN_NO_OFFSET, "not enough memory");
    }
    hfn_file_close(&symbols->file, &env); /* names are copies */
    hfn_free_memory(&env, map, sizeof *map);
    return hfn_symbols_finish_load(out, symbols, status, err);
}

static hotfn_status begin_load(hotfn_symbols **symbols, hotfn_symbols_options *copy,
                               const char *path, const hotfn_symbols_options *options,
                               const hotfn_env *env, hotfn_error *err)
{
    const uint32_t known = HOTFN_SYMBOLS_NO_SEPARATE | HOTFN_SYMBOLS_DATA | HOTFN_SYMBOLS_FORCE;
    hotfn_status status = hfn_symbols_copy_options(copy, options, known, err);

    if (status != HOTFN_OK) {
        return status;
    }
    *symbols = hfn_symbols_new(path, env);
    return *symbols ? HOTFN_OK : hfn_report_no_memory(err, path);
}

hotfn_status hotfn_symbols_load_map(hotfn_symbols **out, const char *path, const hotfn_image *image,
                                    const hotfn_symbols_options *options, const hotfn_env *env,
                                    hotfn_error *err)
{
    if (!out || !path) {
        return hfn_report_null(err, __func__);
    }

    hotfn_symbols_options copy;
    hotfn_symbols *symbols = NULL;
    hotfn_status status = begin_load(&symbols, &copy, path, options, env, err);

    if (status == HOTFN_OK) {
        status = hfn_file_open(&symbols->file, path, &symbols->table.env, err);
        if (status == HOTFN_OK) {
            return load_map(out, symbols,
                            (hfn_span){ symbols->file.data, symbols->file.size, false }, image,
                            copy.flags, err);
        }
    }
    hotfn_symbols_destroy(symbols);
    return status;
}

hotfn_status hotfn_symbols_map_from_bytes(hotfn_symbols **out, const void *bytes,
                                          uint64_t byte_count, const char *name,
                                          const hotfn_image *image,
                                          const hotfn_symbols_options *options,
                                          const hotfn_env *env, hotfn_error *err)
{
    if (!out || (!bytes && byte_count > 0)) {
        return hfn_report_null(err, __func__);
    }

    hotfn_symbols_options copy;
    hotfn_symbols *symbols = NULL;
    hotfn_status status = begin_load(&symbols, &copy, name ? name : "(memory)", options, env, err);

    if (status != HOTFN_OK) {
        return status;
    }
    return load_map(out, symbols, (hfn_span){ bytes, byte_count, false }, image, copy.flags, err);
}
