/* SPDX-License-Identifier: MIT */
/*
 * The headers of a PE file (Microsoft's 'PE Format'): DOS stub, file header, optional header of
 * both widths, data directories.  pe_sections.c reads the sections, pe_directories.c and
 * pe_pointers.c the contents of the directories.  A file that the Windows loader refuses is refused
 * here as well, with the offset of the invalid field.
 */
#include "image/pe.h"
#include "image/inside.h"
#include "image/pe_numbers.h"

#include <string.h>

enum { FILE_HEADER_BYTES = 20, PE_OFFSET_AT = 0x3c };

static hotfn_status fail_format(const hotfn_image *image, hotfn_error *err, uint64_t offset,
                                const char *text)
{
    return hfn_report_error(err, HOTFN_E_FORMAT, image->info.path, offset, "%s", text);
}

static uint32_t machine_of(uint16_t machine, uint32_t bits)
{
    switch (machine) {
    case HFN_PE_MACHINE_I386: return bits == 32 ? HOTFN_MACHINE_X86 : HOTFN_MACHINE_OTHER;
    case HFN_PE_MACHINE_AMD64: return bits == 64 ? HOTFN_MACHINE_X86_64 : HOTFN_MACHINE_OTHER;
    case HFN_PE_MACHINE_ARM64: return bits == 64 ? HOTFN_MACHINE_ARM64 : HOTFN_MACHINE_OTHER;
    case HFN_PE_MACHINE_ARMNT: return bits == 32 ? HOTFN_MACHINE_ARM : HOTFN_MACHINE_OTHER;
    default: return HOTFN_MACHINE_OTHER;
    }
}

/* The file header, behind the signature that the DOS header points to. */
static hotfn_status find_headers(hotfn_image *image, hfn_pe_headers *h, hotfn_error *err)
{
    hfn_span s = image->bytes;
    uint32_t at, signature;

    if (!hfn_span_u32(s, PE_OFFSET_AT, &at)) {
        return fail_format(image, err, s.size, "truncated inside its DOS header");
    }
    if (!hfn_span_u32(s, at, &signature)) {
        return fail_format(image, err, PE_OFFSET_AT, "its PE header lies outside the file");
    }
    if (signature != 0x4550) { /* "PE\0\0" */
        return fail_format(image, err, at,
                           "a DOS program, or an old Windows one (no PE signature here)");
    }
    h->file_at = (uint64_t)at + 4;
    if (!hfn_span_has(s, h->file_at, FILE_HEADER_BYTES)) {
        return fail_format(image, err, h->file_at, "truncated inside its PE header");
    }
    hfn_span_u16(s, h->file_at, &h->machine);
    hfn_span_u16(s, h->file_at + 2, &h->section_count);
    hfn_span_u32(s, h->file_at + 4, &image->pe.time_stamp);
    hfn_span_u32(s, h->file_at + 8, &image->pe.symbols_offset);
    hfn_span_u32(s, h->file_at + 12, &image->pe.symbol_count);
    hfn_span_u16(s, h->file_at + 16, &h->optional_bytes);
    hfn_span_u16(s, h->file_at + 18, &h->characteristics);
    h->optional_at = h->file_at + FILE_HEADER_BYTES;
    return HOTFN_OK;
}

/* Read the directories that fit into the optional header.  Their contents are checked when they are
 * read. */
static void read_directories(hotfn_image *image, hfn_span optional, uint64_t at)
{
    uint32_t count = 0;

    hfn_span_u32(optional, at, &count);
    for (uint32_t i = 0; i < HFN_PE_DIRECTORIES && i < count; i++) {
        hfn_pe_range *d = &image->pe.directories[i];
        if (!hfn_span_u32(optional, at + 4 + 8 * (uint64_t)i, &d->rva) ||
            !hfn_span_u32(optional, at + 8 + 8 * (uint64_t)i, &d->byte_count)) {
            break;
        }
    }
}

static hotfn_status read_optional(hotfn_image *image, hfn_pe_headers *h, hotfn_error *err)
{
    hfn_span s = hfn_span_sub(image->bytes, h->optional_at, h->optional_bytes);
    uint32_t image_bytes, entry = 0;
    uint16_t magic = 0;

    hfn_span_u16(s, 0, &magic);
    if (!s.size || (magic != HFN_PE32 && magic != HFN_PE32_PLUS)) {
        return fail_format(image, err, h->optional_at,
                           "no optional header of a PE32 or PE32+ file: not a linked image");
    }
    image->word_bytes = magic == HFN_PE32_PLUS ? 8 : 4;
    image->info.bits = image->word_bytes * 8;
    hfn_span_u32(s, 16, &entry);
    if (!hfn_span_word(s, image->word_bytes == 8 ? 24 : 28, image->word_bytes,
                       &image->info.link_base) ||
        !hfn_span_u32(s, 32, &h->section_alignment) || !hfn_span_u32(s, 36, &h->file_alignment) ||
        !hfn_span_u32(s, 56, &image_bytes) || !hfn_span_u32(s, 60, &h->header_bytes)) {
        return fail_format(image, err, h->optional_at, "its optional header is cut short");
    }
    image->info.loaded_bytes = image_bytes;
    if (image->info.link_base > (image->word_bytes == 8 ? UINT64_MAX : UINT32_MAX) - image_bytes) {
        return fail_format(image, err, h->optional_at + 56,
                           "its SizeOfImage reaches beyond the address space");
    }
    read_directories(image, s, image->word_bytes == 8 ? 108 : 92);
    h->entry = entry;
    return HOTFN_OK;
}

static hotfn_status check_kind(const hotfn_image *image, const hfn_pe_headers *h, hotfn_error *err)
{
    if (!(h->characteristics & HFN_PE_EXECUTABLE_IMAGE)) {
        return fail_format(image, err, h->file_at + 18,
                           "its linker marked it as not executable: linking failed");
    }
    if (h->section_count == 0) {
        return fail_format(image, err, h->file_at + 2,
                           "it has no sections: nothing to count in it");
    }
    return HOTFN_OK;
}

/* The load configuration marks an image with code of two machines (ARM64EC, ARM64X), which cannot
 * be decoded by the rules of one machine.  IMAGE_LOAD_CONFIG_DIRECTORY, CHPEMetadataPointer. */
static bool is_hybrid(const hotfn_image *image)
{
    uint64_t rva, value = 0;
    hfn_span config = hfn_pe_directory(image, HFN_PE_LOAD_CONFIG, &rva);
    uint32_t bytes = 0, at = image->word_bytes == 8 ? 200 : 124;

    return hfn_span_u32(config, 0, &bytes) && bytes >= at + image->word_bytes &&
           hfn_span_word(config, at, image->word_bytes, &value) && value != 0;
}

static void fill_info(hotfn_image *image, const hfn_pe_headers *h)
{
    hotfn_image_info *info = &image->info;

    info->format = HOTFN_FORMAT_PE;
    info->raw_machine = h->machine;
    info->machine = machine_of(h->machine, info->bits);
    if (info->machine != HOTFN_MACHINE_X86 && is_hybrid(image)) {
        hfn_log_message(&image->env, HOTFN_LOG_WARNING,
                        "%s: holds code of two machines: none of it can be hooked", info->path);
        info->machine = HOTFN_MACHINE_OTHER;
    }
    if (h->entry && h->entry < info->loaded_bytes) {
        info->entry_rva = h->entry;
        info->flags |= h->characteristics & HFN_PE_DLL ? 0 : HOTFN_IMAGE_EXECUTABLE;
    }
    /* Without relocations the loader can put it nowhere else, whatever other flags say. */
    if ((h->characteristics & HFN_PE_RELOCS_STRIPPED) ||
        image->pe.directories[HFN_PE_RELOCATIONS].byte_count == 0) {
        info->flags |= HOTFN_IMAGE_FIXED;
    }
    if (!image->pe.symbol_entries.size) {
        info->flags |= HOTFN_IMAGE_STRIPPED;
    }
}

hotfn_status hfn_pe_read(hotfn_image *image, hotfn_error *err)
{
    hfn_pe_headers h = { 0 };
    hotfn_status status = find_headers(image, &h, err);

    if (status != HOTFN_OK || (status = read_optional(image, &h, err)) != HOTFN_OK ||
        (status = check_kind(image, &h, err)) != HOTFN_OK ||
        (status = hfn_pe_read_sections(image, &h, err)) != HOTFN_OK ||
        (status = hfn_address_index(image, err)) != HOTFN_OK) {
        return status;
    }
    fill_info(image, &h);
    hfn_image_find_id(image);
    return HOTFN_OK;
}
