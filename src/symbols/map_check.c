/* SPDX-License-Identifier: MIT */
/*
 * Checks that the map belongs to the image.  Its sections must have the same addresses: they are
 * compared by name in ELF files and GNU ld's PE files, by number in Microsoft's.  The entry point
 * must be the same, and so must the time stamp if both have one. Symbols in the middle of functions
 * are detected later, with unwind data (src/functions).
 */
#include "symbols/map.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static hotfn_status fail_mismatch(const hfn_linker_map *map, const char *what, uint64_t in_map,
                                  uint64_t in_image)
{
    return hfn_report_error(map->err, HOTFN_E_MISMATCH, map->lines.path, HOTFN_NO_OFFSET,
                            "this is the map of another build: %s is 0x%" PRIx64
                            " in the map, 0x%" PRIx64
                            " in %.200s; use the map that the same link wrote",
                            what, in_map, in_image, hfn_image_path(map->image));
}

/* The section of the image with that name; false if there is none. */
static bool find_named(const hotfn_image *image, hfn_text name, hotfn_section *out)
{
    for (uint32_t i = 0; i < hotfn_image_get_section_count(image); i++) {
        if (hotfn_image_get_section(image, i, out) == HOTFN_OK && hfn_text_is(name, out->name)) {
            return true;
        }
    }
    return false;
}

/* In a PE file the size of a section may be rounded up to the file alignment; a map has the exact
 * size. */
static bool same_size(const hfn_linker_map *map, uint64_t a, uint64_t b)
{
    uint64_t slack = map->image_format == HOTFN_FORMAT_PE ? 0xfff : 0;

    return a == b || (a + slack >= b && b + slack >= a);
}

static hotfn_status check_section(const hfn_linker_map *map, const hfn_map_section *s,
                                  const hotfn_section *in_image)
{
    char what[80];
    int length = hfn_text_length(s->name) < 40 ? (int)hfn_text_length(s->name) : 40;

    if (s->address - map->base != in_image->rva) {
        snprintf(what, sizeof what, "the address of %.*s", length, s->name.at);
        return fail_mismatch(map, what, s->address - map->base, in_image->rva);
    }
    if (!same_size(map, s->byte_count, in_image->byte_count)) {
        snprintf(what, sizeof what, "the size of %.*s", length, s->name.at);
        return fail_mismatch(map, what, s->byte_count, in_image->byte_count);
    }
    return HOTFN_OK;
}

static hotfn_status check_by_name(const hfn_linker_map *map)
{
    hotfn_status status = HOTFN_OK;

    for (uint32_t i = 0; status == HOTFN_OK && i < map->section_count; i++) {
        const hfn_map_section *s = &map->sections[i];
        hotfn_section in_image = HOTFN_SECTION_INIT;
        if (s->flags & (HFN_MAP_UNLOADED | HFN_MAP_THREAD) || s->byte_count == 0) {
            continue;
        }
        if (find_named(map->image, s->name, &in_image)) {
            if (in_image.flags & HOTFN_SECTION_LOADED) {
                status = check_section(map, s, &in_image);
            }
        } else if (s->flags & HFN_MAP_CODE && s->byte_count &&
                   !hfn_image_is_code(map->image, s->address - map->base)) {
            status = fail_mismatch(
                map, "the address of a code section that the image does not have", s->address, 0);
        }
    }
    return status;
}

/* Segment n of a map is section n of the image. A map does not list segments without symbols. */
static hotfn_status check_by_number(const hfn_linker_map *map)
{
    hotfn_status status = HOTFN_OK;

    for (uint32_t i = 0; status == HOTFN_OK && i < map->section_count; i++) {
        const hfn_map_section *s = &map->sections[i];
        hotfn_section in_image = HOTFN_SECTION_INIT;
        if (s->flags & HFN_MAP_UNLOADED) {
            continue;
        }
        if (hotfn_image_get_section(map->image, i, &in_image) != HOTFN_OK) {
            return fail_mismatch(map, "the number of sections", map->section_count,
                                 hotfn_image_get_section_count(map->image));
        }
        if (s->address - map->base != in_image.rva || s->byte_count > in_image.byte_count + 0xfff) {
            status = check_section(map, s, &in_image);
        }
    }
    return status;
}

/* TimeDateStamp of the COFF header (PE format, 'COFF File Header'); false if there is none. */
static bool read_timestamp(const hotfn_image *image, uint32_t *out)
{
    uint32_t header = 0;

    return hfn_span_u32(hfn_image_file(image), 0x3c, &header) &&
           hfn_span_u32(hfn_image_file(image), (uint64_t)header + 8, out);
}

static hotfn_status check_numbers(const hfn_linker_map *map, const hotfn_image_info *info)
{
    uint32_t timestamp = 0;

    if (map->has_entry && info->entry_rva && map->entry - map->base != info->entry_rva) {
        return fail_mismatch(map, "the entry point", map->entry - map->base, info->entry_rva);
    }
    if (map->has_timestamp && info->format == HOTFN_FORMAT_PE &&
        read_timestamp(map->image, &timestamp) && timestamp != map->timestamp) {
        return fail_mismatch(map, "the time stamp", map->timestamp, timestamp);
    }
    return HOTFN_OK;
}

static hotfn_status check_sections_and_entry(const hfn_linker_map *map)
{
    hotfn_image_info info = HOTFN_IMAGE_INFO_INIT;
    hotfn_status status;

    hotfn_image_get_info(map->image, &info);
    if (map->is_macho || (map->image_format && map->image_format != info.format)) {
        return hfn_report_error(map->err, HOTFN_E_MISMATCH, map->lines.path, HOTFN_NO_OFFSET,
                                "this is the map of another kind of file than %.200s", info.path);
    }
    if (map->machine != HOTFN_MACHINE_OTHER && map->machine != info.machine) {
        return fail_mismatch(map, "the machine (HOTFN_MACHINE_*)", map->machine, info.machine);
    }
    status = map->by_number ? check_by_number(map) : check_by_name(map);
    return status == HOTFN_OK ? check_numbers(map, &info) : status;
}

hotfn_status hfn_map_check(const hfn_linker_map *map)
{
    hotfn_error kept = HOTFN_ERROR_INIT;
    hotfn_status status;
    hfn_linker_map forced;

    if (!map->image || !map->forced) {
        return map->image ? check_sections_and_entry(map) : HOTFN_OK;
    }
    forced = *map;
    forced.err = &kept;
    status = check_sections_and_entry(&forced);
    if (status != HOTFN_OK) {
        hfn_log_message(&map->symbols->table.env, HOTFN_LOG_WARNING, "%s: used by force: %s",
                        map->lines.path, kept.text);
    }
    return HOTFN_OK;
}
