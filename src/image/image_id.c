/* SPDX-License-Identifier: MIT */
/*
 * The image id distinguishes one build of a file from another.  For ELF it is the linker's build-id
 * (a note of PT_NOTE or, in a separate debug file, of an SHT_NOTE section); for PE the GUID and age
 * of the PDB, or else the time and size in the headers.  Without any of these it is a hash of the
 * code, so that a record of another build is still detected.
 */
#include "base/byte_order.h"
#include "base/hash.h"
#include "image/inside.h"
#include "image/pe.h"

#include <string.h>

static uint64_t align_up(uint64_t value, uint64_t alignment)
{
    return (value + alignment - 1) & ~(alignment - 1);
}

/* gABI ch. 5, 'Note Section': namesz, descsz, type, name, desc; padded to 4, in newer notes with
 * 8-byte alignment to 8. */
static hfn_span find_build_id(hfn_span notes, uint64_t alignment)
{
    uint32_t name_bytes, bytes, type;
    uint64_t at = 0;

    alignment = alignment == 8 ? 8 : 4;
    while (hfn_span_u32(notes, at, &name_bytes) && hfn_span_u32(notes, at + 4, &bytes) &&
           hfn_span_u32(notes, at + 8, &type)) {
        uint64_t desc_at = align_up(at + 12 + name_bytes, alignment);
        hfn_span name = hfn_span_sub(notes, at + 12, name_bytes);
        hfn_span desc = hfn_span_sub(notes, desc_at, bytes);
        if (type == HFN_NT_GNU_BUILD_ID && name.size == 4 && memcmp(name.data, "GNU", 4) == 0) {
            return desc;
        }
        at = align_up(desc_at + bytes, alignment);
    }
    return (hfn_span){ NULL, 0, false };
}

static hfn_span build_id(const hotfn_image *image)
{
    hfn_span id = { NULL, 0, false };

    for (uint32_t i = 0; i < image->segment_count && !id.size && !image->debug_only; i++) {
        const hfn_segment *s = &image->segments[i];
        if (s->type == HFN_PT_NOTE) {
            id = find_build_id(hfn_span_sub(image->bytes, s->offset, s->file_bytes), s->alignment);
        }
    }
    for (uint32_t i = 0; i < image->section_count && !id.size; i++) {
        const hfn_elf_section *s = &image->sections[i];
        if (s->type == HFN_SHT_NOTE) {
            id = find_build_id(hfn_elf_section_bytes(image, s), 4);
        }
    }
    return id;
}

static uint64_t hash_code(const hotfn_image *image)
{
    uint64_t hash = HFN_HASH_BEGIN;
    /* thousands of sections may overlap: the hash covers at most as many bytes as the file has */
    uint64_t remaining = image->bytes.size;

    for (uint32_t i = 0; i < image->code_count; i++) {
        hfn_span bytes = hfn_elf_section_bytes(image, &image->sections[image->code[i].section]);
        uint64_t count = bytes.size < remaining ? bytes.size : remaining;

        hash = hfn_hash_bytes(hash, bytes.data, (size_t)count);
        remaining -= count;
    }
    return hash;
}

static void put_number(hotfn_image_info *info, uint32_t number)
{
    hfn_write_le32(info->id + info->id_bytes, number);
    info->id_bytes += 4;
}

/* False if the headers identify no build: a linker that writes no time stores 0. */
static bool find_pe_id(hotfn_image *image)
{
    hotfn_image_info *info = &image->info;
    hfn_pe_pdb pdb;

    if (info->format != HOTFN_FORMAT_PE) {
        return false;
    }
    if (hfn_pe_pdb_of(image, &pdb)) {
        info->id_kind = HOTFN_ID_PDB;
        info->id_bytes = sizeof pdb.guid;
        memcpy(info->id, pdb.guid, sizeof pdb.guid);
        put_number(info, pdb.age);
    } else if (image->pe.time_stamp != 0 && image->pe.time_stamp != UINT32_MAX) {
        info->id_kind = HOTFN_ID_PE;
        put_number(info, image->pe.time_stamp);
        put_number(info, (uint32_t)info->loaded_bytes);
    }
    return info->id_bytes > 0;
}

void hfn_image_find_id(hotfn_image *image)
{
    hfn_span id = build_id(image);
    hotfn_image_info *info = &image->info;

    if (find_pe_id(image)) {
        return;
    }
    if (id.size) {
        info->id_kind = HOTFN_ID_BUILD_ID;
        info->id_bytes = id.size < sizeof info->id ? (uint32_t)id.size : (uint32_t)sizeof info->id;
        memcpy(info->id, id.data, info->id_bytes);
    } else if (image->code_count && !image->debug_only) {
        uint64_t hash = hash_code(image);
        info->id_kind = HOTFN_ID_CODE_HASH;
        info->id_bytes = 8;
        for (int i = 0; i < 8; i++) { /* most significant byte first, as one reads a number */
            info->id[i] = (uint8_t)(hash >> (56 - 8 * i));
        }
    }
}
