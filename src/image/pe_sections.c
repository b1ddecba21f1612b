/* SPDX-License-Identifier: MIT */
/*
 * The section table (PE Format, 'Section Table').  Sections are stored as ELF sections, so that the
 * later folders need no special case: a link address, flags, the size in memory and the size in the
 * file, which may be smaller (the remaining bytes are zero) or larger (padding).  Windows maps the
 * headers and then each section separately, so each of them is also stored as a segment.
 */
#include "image/inside.h"
#include "image/pe.h"
#include "image/pe_numbers.h"

#include <string.h>

enum { ENTRY_BYTES = 40, NAME_BYTES = 8, SECTOR_BYTES = 512, PAGE_BYTES = 4096 };

/* A section header as the file has it. */
typedef struct header {
    uint64_t at; /* file offset of the header */
    uint32_t memory_bytes, rva, file_bytes, offset, flags;
} header;

/* The name "/123" refers to the string at offset 123 of the string table; mingw writes such names
 * for .debug_info and other long names. */
static const char *long_name(const hotfn_image *image, const char *digits)
{
    uint64_t offset = 0;

    for (; *digits; digits++) {
        if (*digits < '0' || *digits > '9') {
            return NULL;
        }
        offset = offset * 10 + (uint64_t)(*digits - '0');
    }
    return hfn_span_name(image->pe.symbol_names, offset);
}

static const char *name_of(hotfn_image *image, uint64_t at)
{
    const char *raw = (const char *)image->bytes.data + at, *name = NULL;
    char *copy = hfn_arena_copy(&image->arena, raw, strnlen(raw, NAME_BYTES));

    if (copy && copy[0] == '/' && copy[1]) {
        name = long_name(image, copy + 1);
    }
    return name ? name : copy;
}

static header read_header(const hotfn_image *image, uint64_t at)
{
    hfn_span s = image->bytes;
    header h = { .at = at };

    hfn_span_u32(s, at + 8, &h.memory_bytes);
    hfn_span_u32(s, at + 12, &h.rva);
    hfn_span_u32(s, at + 16, &h.file_bytes);
    hfn_span_u32(s, at + 20, &h.offset);
    hfn_span_u32(s, at + 36, &h.flags);
    return h;
}

/* Apply the loader's rules: a VirtualSize of 0 means the raw size (old linkers), and the raw data
 * begin at a sector boundary if sections are aligned to pages. */
static void adjust_header(header *h, const hfn_pe_headers *headers)
{
    if (h->memory_bytes == 0) {
        h->memory_bytes = h->file_bytes;
    }
    if (headers->section_alignment >= PAGE_BYTES) {
        h->offset &= ~(uint32_t)(SECTOR_BYTES - 1);
    }
    if (h->offset == 0) {
        h->file_bytes = 0;
    }
}

static hotfn_status check_header(const hotfn_image *image, const header *h, uint64_t lowest,
                                 hotfn_error *err)
{
    const char *path = image->info.path;

    if (h->rva < lowest) {
        return hfn_report_error(
            err, HOTFN_E_FORMAT, path, h->at + 12,
            "a section at RVA 0x%x overlaps the headers or section before it, which end at 0x%llx",
            h->rva, (unsigned long long)lowest);
    }
    if (h->rva > image->info.loaded_bytes || h->memory_bytes > image->info.loaded_bytes - h->rva) {
        return hfn_report_error(
            err, HOTFN_E_FORMAT, path, h->at + 8,
            "a section of 0x%x bytes at RVA 0x%x reaches beyond the SizeOfImage", h->memory_bytes,
            h->rva);
    }
    if (h->file_bytes && !hfn_span_has(image->bytes, h->offset, h->file_bytes)) {
        return hfn_report_error(
            err, HOTFN_E_FORMAT, path, h->offset,
            "truncated: a section needs %u bytes from here, the file ends at %llu", h->file_bytes,
            (unsigned long long)image->bytes.size);
    }
    return HOTFN_OK;
}

static hfn_elf_section section_of(const hotfn_image *image, const header *h, const char *name)
{
    hfn_elf_section s = { .name = name, .type = HFN_SHT_PROGBITS, .flags = HFN_SHF_ALLOC };

    s.type = h->file_bytes ? HFN_SHT_PROGBITS : HFN_SHT_NOBITS;
    s.flags |= h->flags & HFN_PE_SECTION_EXECUTE ? HFN_SHF_EXECINSTR : 0;
    s.flags |= h->flags & HFN_PE_SECTION_WRITE ? HFN_SHF_WRITE : 0;
    s.address = image->info.link_base + h->rva;
    s.offset = h->offset;
    s.size = h->memory_bytes;
    s.file_bytes = h->file_bytes;
    return s;
}

static void add_load(hotfn_image *image, uint64_t rva, uint64_t memory_bytes, uint64_t offset,
                     uint64_t file_bytes)
{
    image->loads[image->load_count++] = (hfn_segment){
        .type = HFN_PT_LOAD,
        .offset = offset,
        .file_bytes = file_bytes < memory_bytes ? file_bytes : memory_bytes,
        .address = image->info.link_base + rva,
        .memory_bytes = memory_bytes,
    };
}

/* An empty section, such as a resource section without resources, is kept but not mapped. */
static hotfn_status read_table(hotfn_image *image, const hfn_pe_headers *headers, uint64_t table_at,
                               hotfn_error *err)
{
    uint64_t lowest = headers->header_bytes;

    for (uint32_t i = 0; i < headers->section_count; i++) {
        uint64_t at = table_at + (uint64_t)i * ENTRY_BYTES;
        header h = read_header(image, at);
        adjust_header(&h, headers);
        hotfn_status status = check_header(image, &h, lowest, err);
        const char *name = status == HOTFN_OK ? name_of(image, at) : NULL;
        if (status != HOTFN_OK) {
            return status;
        }
        if (!name) {
            return hfn_image_no_memory(image, err);
        }
        image->sections[i] = section_of(image, &h, name);
        image->section_count = i + 1;
        if (h.memory_bytes == 0) {
            continue;
        }
        add_load(image, h.rva, h.memory_bytes, h.offset, h.file_bytes);
        lowest = (uint64_t)h.rva + h.memory_bytes;
    }
    return HOTFN_OK;
}

hotfn_status hfn_pe_read_sections(hotfn_image *image, const hfn_pe_headers *headers,
                                  hotfn_error *err)
{
    uint64_t table_at = headers->optional_at + headers->optional_bytes;
    uint32_t count = headers->section_count;

    if (!hfn_span_has(image->bytes, table_at, (uint64_t)count * ENTRY_BYTES)) {
        return hfn_report_error(
            err, HOTFN_E_FORMAT, image->info.path, table_at,
            "%u section headers lie outside the file: it is truncated or damaged", count);
    }
    if (headers->header_bytes > image->bytes.size ||
        headers->header_bytes > image->info.loaded_bytes) {
        return hfn_report_error(err, HOTFN_E_FORMAT, image->info.path, headers->optional_at + 60,
                                "its SizeOfHeaders (%u) is larger than the file or the image",
                                headers->header_bytes);
    }
    image->sections = hfn_arena_alloc(&image->arena, count * sizeof *image->sections);
    image->loads = hfn_arena_alloc(&image->arena, (count + 1u) * sizeof *image->loads);
    if (!image->sections || !image->loads) {
        return hfn_image_no_memory(image, err);
    }
    hfn_pe_find_symtab(image);
    if (headers->header_bytes) {
        add_load(image, 0, headers->header_bytes, 0, headers->header_bytes);
    }
    return read_table(image, headers, table_at, err);
}
