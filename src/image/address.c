/* SPDX-License-Identifier: MIT */
/*
 * From RVAs to file bytes and sections: the one place where link address, RVA and file offset meet.
 * Segments say where bytes are; sections say what is code, because an executable segment may have
 * holes and may hold read-only data (node does both).
 */
#include "image/inside.h"

#include "base/search.h"

#include <string.h>

/* The last segment that begins at or before link_address, or NULL. */
static const hfn_segment *load_before(const hotfn_image *image, uint64_t link_address)
{
    size_t low = hfn_count_up_to(image->loads, image->load_count, sizeof *image->loads,
                                 offsetof(hfn_segment, address), link_address);

    return low > 0 ? &image->loads[low - 1] : NULL;
}

/* The segment in whose memory link_address lies, or NULL. */
static const hfn_segment *find_load(const hotfn_image *image, uint64_t link_address)
{
    const hfn_segment *load = load_before(image, link_address);

    return load && link_address - load->address < load->memory_bytes ? load : NULL;
}

uint64_t hfn_image_tail_bytes(const hotfn_image *image, uint64_t end_rva)
{
    const hfn_segment *load =
        end_rva > 0 ? find_load(image, image->info.link_base + end_rva - 1) : NULL;

    return load && load->address + load->memory_bytes == image->info.link_base + end_rva
               ? load->tail_bytes
               : 0;
}

bool hfn_image_rva(const hotfn_image *image, uint64_t link_address, uint64_t *rva)
{
    if (!find_load(image, link_address)) {
        return false;
    }
    *rva = link_address - image->info.link_base;
    return true;
}

hfn_span hfn_image_span(const hotfn_image *image, uint64_t rva)
{
    uint64_t address = image->info.link_base + rva;
    const hfn_segment *load = rva < image->info.loaded_bytes ? load_before(image, address) : NULL;

    if (!load || address - load->address >= load->file_bytes + load->tail_bytes) {
        return (hfn_span){ NULL, 0, image->bytes.big_endian };
    }
    return hfn_span_sub(image->bytes, load->offset + (address - load->address),
                        load->file_bytes + load->tail_bytes - (address - load->address));
}

/* The range that holds rva, or NULL. */
static const hfn_range *find_range(const hfn_range *ranges, uint32_t count, uint64_t rva)
{
    size_t low = hfn_count_up_to(ranges, count, sizeof *ranges, offsetof(hfn_range, rva), rva);

    return low > 0 && rva < ranges[low - 1].end ? &ranges[low - 1] : NULL;
}

bool hfn_image_is_code(const hotfn_image *image, uint64_t rva)
{
    return find_range(image->code, image->code_count, rva) != NULL;
}

uint32_t hfn_image_section_of(const hotfn_image *image, uint64_t rva)
{
    const hfn_range *range = find_range(image->placed, image->placed_count, rva);

    return range ? range->section : UINT32_MAX;
}

/* Does the section occupy its addresses?  .tbss does not: it would overlap the next section. */
static bool occupies_addresses(const hfn_elf_section *s)
{
    return (s->flags & HFN_SHF_ALLOC) && s->size > 0 &&
           !((s->flags & HFN_SHF_TLS) && s->type == HFN_SHT_NOBITS);
}

/* Insertion takes one comparison for each section that is in order, which is nearly always the
 * case. The caller limits the steps, so that a file with a million unordered sections is
 * refused. */
static bool insert_range(hfn_range *ranges, uint32_t count, hfn_range range, uint64_t *steps)
{
    while (count > 0 && ranges[count - 1].rva > range.rva) {
        ranges[count] = ranges[count - 1];
        count--;
        if ((*steps)-- == 0) {
            return false;
        }
    }
    ranges[count] = range;
    return true;
}

static bool index_sections(hotfn_image *image)
{
    uint64_t steps = 100 * 1000 * 1000;

    for (uint32_t i = 0; i < image->section_count; i++) {
        const hfn_elf_section *s = &image->sections[i];
        hfn_range range = { 0, 0, i };
        if (!occupies_addresses(s) || !hfn_image_rva(image, s->address, &range.rva) ||
            s->size > image->info.loaded_bytes - range.rva) {
            continue;
        }
        range.end = range.rva + s->size;
        if (!insert_range(image->placed, image->placed_count++, range, &steps)) {
            return false;
        }
    }
    for (uint32_t i = 0; i < image->placed_count; i++) {
        if (image->sections[image->placed[i].section].flags & HFN_SHF_EXECINSTR) {
            image->code[image->code_count++] = image->placed[i];
        }
    }
    return true;
}

hotfn_status hfn_address_index(hotfn_image *image, hotfn_error *err)
{
    size_t bytes = image->section_count * sizeof(hfn_range);

    image->placed = hfn_arena_alloc(&image->arena, bytes);
    image->code = hfn_arena_alloc(&image->arena, bytes);
    if (!image->placed || !image->code) {
        return hfn_image_no_memory(image, err);
    }
    if (!index_sections(image)) {
        return hfn_report_error(err, HOTFN_E_FORMAT, image->info.path, HOTFN_NO_OFFSET,
                                "too many sections are out of order: the file is damaged");
    }
    return HOTFN_OK;
}
