/* SPDX-License-Identifier: MIT */
/*
 * The section headers (System V gABI ch. 4, 'Sections').  The table must lie inside the file; a
 * section whose bytes lie outside is kept and reads as empty.  sh_link is followed only one step,
 * so a cycle is harmless.  An image without sections (sstrip, packers) gets one section for each
 * segment, so that the later folders need no special case.
 */
#include "image/inside.h"

#include <stdio.h>
#include <string.h>

enum { MAX_SECTIONS = 1 << 22 };

/* sh_name, sh_type, then words and 32-bit numbers in the same order in both classes. */
static bool read_numbers(const hotfn_image *image, uint64_t at, hfn_elf_section *out,
                         uint32_t *name_offset)
{
    hfn_span s = image->bytes;
    uint64_t word = image->word_bytes;
    uint32_t bytes = image->word_bytes;

    return hfn_span_has(s, at, 16 + 6 * word) && hfn_span_u32(s, at, name_offset) &&
           hfn_span_u32(s, at + 4, &out->type) && hfn_span_word(s, at + 8, bytes, &out->flags) &&
           hfn_span_word(s, at + 8 + word, bytes, &out->address) &&
           hfn_span_word(s, at + 8 + 2 * word, bytes, &out->offset) &&
           hfn_span_word(s, at + 8 + 3 * word, bytes, &out->size) &&
           hfn_span_u32(s, at + 8 + 4 * word, &out->link) &&
           hfn_span_u32(s, at + 12 + 4 * word, &out->info) &&
           hfn_span_word(s, at + 16 + 5 * word, bytes, &out->entry_size);
}

bool hfn_elf_read_section(const hotfn_image *image, uint64_t at, hfn_elf_section *out,
                          uint32_t *name_offset)
{
    *out = (hfn_elf_section){ .name = "" };
    if (!read_numbers(image, at, out, name_offset)) {
        return false;
    }
    out->file_bytes = out->type == HFN_SHT_NOBITS ? 0 : out->size;
    return true;
}

static void name_sections(hotfn_image *image, uint32_t names_index, const uint32_t *name_offsets)
{
    hfn_span names = { NULL, 0, false };

    if (names_index < image->section_count) {
        names = hfn_span_string_table(hfn_elf_section_bytes(image, &image->sections[names_index]));
    }
    for (uint32_t i = 0; i < image->section_count; i++) {
        const char *name = hfn_span_name(names, name_offsets[i]);
        image->sections[i].name = name ? name : "";
    }
}

static void warn_of_truncated_sections(const hotfn_image *image)
{
    uint32_t remaining = 8; /* further warnings are suppressed */

    for (uint32_t i = 1; i < image->section_count && remaining > 0; i++) {
        const hfn_elf_section *s = &image->sections[i];
        bool is_outside =
            s->type != HFN_SHT_NOBITS && s->size && !hfn_span_has(image->bytes, s->offset, s->size);
        remaining -= is_outside;
        if (is_outside) {
            hfn_log_message(&image->env, HOTFN_LOG_WARNING,
                            "%s: section %u (%.64s) lies outside the file: read as empty",
                            image->info.path, i, s->name);
        }
    }
}

hotfn_status hfn_elf_read_sections(hotfn_image *image, uint64_t table_offset, uint64_t count,
                                   uint32_t entry_bytes, uint32_t names_index, hotfn_error *err)
{
    uint32_t min_bytes = image->word_bytes == 8 ? 64 : 40;
    uint32_t *name_offsets;

    if (count == 0) {
        return HOTFN_OK;
    }
    if (entry_bytes < min_bytes) {
        return hfn_report_error(err, HOTFN_E_FORMAT, image->info.path, table_offset,
                                "section header entries of %u bytes are too small", entry_bytes);
    }
    if (count > image->bytes.size / entry_bytes ||
        !hfn_span_has(image->bytes, table_offset, count * entry_bytes)) {
        return hfn_report_error(
            err, HOTFN_E_FORMAT, image->info.path, table_offset,
            "%llu section headers lie outside the file: it is truncated or damaged",
            (unsigned long long)count);
    }
    if (count > MAX_SECTIONS) {
        return hfn_report_error(err, HOTFN_E_LIMIT, image->info.path, table_offset,
                                "more than 4194304 sections");
    }
    image->sections = hfn_arena_alloc(&image->arena, (size_t)count * sizeof *image->sections);
    name_offsets = hfn_allocate_zeroed(&image->env, (size_t)count * sizeof *name_offsets);
    if (!image->sections || !name_offsets) {
        hfn_free_memory(&image->env, name_offsets, (size_t)count * sizeof *name_offsets);
        return hfn_image_no_memory(image, err);
    }
    image->section_count = (uint32_t)count;
    for (uint32_t i = 0; i < count; i++) {
        hfn_elf_read_section(image, table_offset + (uint64_t)i * entry_bytes, &image->sections[i],
                             &name_offsets[i]);
    }
    name_sections(image, names_index, name_offsets);
    hfn_free_memory(&image->env, name_offsets, (size_t)count * sizeof *name_offsets);
    warn_of_truncated_sections(image);
    return HOTFN_OK;
}

static bool has_loaded_section(const hotfn_image *image)
{
    for (uint32_t i = 0; i < image->section_count; i++) {
        if ((image->sections[i].flags & HFN_SHF_ALLOC) && image->sections[i].size) {
            return true;
        }
    }
    return false;
}

static hfn_elf_section convert_segment(const hfn_segment *load, const char *name)
{
    hfn_elf_section s = { .name = name, .address = load->address, .size = load->memory_bytes };

    s.flags = HFN_SHF_ALLOC;
    s.flags |= load->flags & HFN_PF_X ? HFN_SHF_EXECINSTR : 0;
    s.flags |= load->flags & HFN_PF_W ? HFN_SHF_WRITE : 0;
    s.offset = load->offset;
    s.type = load->file_bytes ? HFN_SHT_PROGBITS : HFN_SHT_NOBITS;
    /* a section either has bytes in the file or has none: the zeros after them are omitted */
    if (load->file_bytes) {
        s.size = load->file_bytes;
    }
    s.file_bytes = load->file_bytes;
    return s;
}

hotfn_status hfn_elf_synthesise_sections(hotfn_image *image, hotfn_error *err)
{
    hfn_elf_section *all;
    char name[32];

    if (has_loaded_section(image)) {
        return HOTFN_OK;
    }
    all = hfn_arena_alloc(&image->arena,
                          (image->section_count + (size_t)image->load_count) * sizeof *all);
    if (!all) {
        return hfn_image_no_memory(image, err);
    }
    if (image->section_count) {
        memcpy(all, image->sections, image->section_count * sizeof *all);
    }
    for (uint32_t i = 0; i < image->load_count; i++) {
        int length = snprintf(name, sizeof name, "segment%u", i);
        char *copy = hfn_arena_copy(&image->arena, name, (size_t)length);
        if (!copy) {
            return hfn_image_no_memory(image, err);
        }
        all[image->section_count + i] = convert_segment(&image->loads[i], copy);
    }
    image->sections = all;
    image->section_count += image->load_count;
    image->sections_synthetic = true;
    return HOTFN_OK;
}

uint32_t hfn_elf_section_count(const hotfn_image *image)
{
    return image->section_count;
}

const hfn_elf_section *hfn_elf_section_at(const hotfn_image *image, uint32_t index)
{
    return index < image->section_count ? &image->sections[index] : NULL;
}

const hfn_elf_section *hfn_elf_section_named(const hotfn_image *image, const char *name)
{
    for (uint32_t i = 0; i < image->section_count; i++) {
        if (strcmp(image->sections[i].name, name) == 0) {
            return &image->sections[i];
        }
    }
    return NULL;
}

hfn_span hfn_elf_section_bytes(const hotfn_image *image, const hfn_elf_section *section)
{
    if (section->type == HFN_SHT_NOBITS || (section->flags & HFN_SHF_COMPRESSED)) {
        return (hfn_span){ NULL, 0, image->bytes.big_endian };
    }
    return hfn_span_sub(image->bytes, section->offset,
                        section->file_bytes < section->size ? section->file_bytes : section->size);
}
