/* SPDX-License-Identifier: MIT */
/* Builds the sorted list of regions, without overlaps, and allocates their marks. */
#include "verdicts/code.h"

#include "base/byte_order.h"

#include "base/search.h"
#include "image/image.h"

#include <stdlib.h>
#include <string.h>

static size_t mark_bytes(const hfn_region *region)
{
    return (size_t)((region->end - region->rva + 1) / 2);
}

static size_t start_bytes(const hfn_region *region)
{
    return (size_t)((region->end - region->rva + 63) / 64 * sizeof *region->starts);
}

static int compare_regions(const void *a, const void *b)
{
    const hfn_region *left = a, *right = b;

    return (left->rva > right->rva) - (left->rva < right->rva);
}

/* Make a region of a section; false if the section contains no code. */
static bool read_region(const hotfn_image *image, uint32_t index, hfn_region *out)
{
    hotfn_section section = HOTFN_SECTION_INIT;
    uint32_t wanted = HOTFN_SECTION_EXECUTE | HOTFN_SECTION_LOADED;

    if (hotfn_image_get_section(image, index, &section) != HOTFN_OK ||
        (section.flags & wanted) != wanted || (section.flags & HOTFN_SECTION_NO_BYTES)) {
        return false;
    }
    hfn_span bytes = hfn_image_span(image, section.rva);
    uint64_t size = bytes.size < section.byte_count ? bytes.size : section.byte_count;
    if (size == 0 || section.rva + size < section.rva) {
        return false;
    }
    *out = (hfn_region){ .rva = section.rva, .end = section.rva + size, .bytes = bytes.data };
    out->tail_end = out->end + hfn_image_tail_bytes(image, out->end);
    return true;
}

/* Remove overlaps with previous regions, and limit the total to the size of the file. */
static uint32_t drop_overlaps(hfn_region *regions, uint32_t count, uint64_t file_bytes)
{
    uint64_t end = 0, left = file_bytes;
    uint32_t kept = 0;

    for (uint32_t i = 0; i < count; i++) {
        hfn_region r = regions[i];
        if (r.rva < end) {
            uint64_t overlap = end < r.end ? end - r.rva : r.end - r.rva;
            r.rva += overlap;
            r.bytes += overlap;
        }
        uint64_t size = r.end - r.rva < left ? r.end - r.rva : left;
        if (size == 0) {
            continue;
        }
        if (size < r.end - r.rva) {
            r.tail_end = r.end = r.rva + size;
        }
        left -= size;
        end = r.end;
        regions[kept++] = r;
    }
    return kept;
}

static bool make_marks(hfn_code *code, const hotfn_env *env)
{
    for (uint32_t i = 0; i < code->count; i++) {
        hfn_region *region = &code->regions[i];
        region->marks = hfn_allocate_zeroed(env, mark_bytes(region));
        region->starts = hfn_allocate_zeroed(env, start_bytes(region));
        if (!region->marks || !region->starts) {
            return false;
        }
    }
    return true;
}

bool hfn_code_init(hfn_code *code, const hotfn_image *image, const hotfn_env *env)
{
    hfn_code made = { 0 };
    hfn_region region;
    size_t capacity = 0;

    for (uint32_t i = 0; i < hotfn_image_get_section_count(image); i++) {
        if (!read_region(image, i, &region)) {
            continue;
        }
        if (!hfn_grow_array(env, (void **)&made.regions, &capacity, made.count + 1u,
                            sizeof region)) {
            goto fail;
        }
        made.regions[made.count++] = region;
    }
    if (made.count > 0) {
        qsort(made.regions, made.count, sizeof region, compare_regions);
    }
    made.count = drop_overlaps(made.regions, made.count, hfn_image_file(image).size);
    made.capacity = capacity;
    if (!make_marks(&made, env)) {
        goto fail;
    }
    *code = made;
    return true;
fail:
    made.capacity = capacity;
    hfn_code_finish(&made, env);
    return false;
}

bool hfn_code_allocate_walked(hfn_code *code, const hfn_region *region, const hotfn_env *env)
{
    if (!region->walked) {
        code->regions[region - code->regions].walked =
            hfn_allocate_zeroed(env, start_bytes(region));
    }
    return region->walked != NULL;
}

void hfn_code_finish(hfn_code *code, const hotfn_env *env)
{
    for (uint32_t i = 0; i < code->count; i++) {
        if (code->regions[i].marks) {
            hfn_free_memory(env, code->regions[i].marks, mark_bytes(&code->regions[i]));
        }
        if (code->regions[i].starts) {
            hfn_free_memory(env, code->regions[i].starts, start_bytes(&code->regions[i]));
        }
        if (code->regions[i].walked) {
            hfn_free_memory(env, code->regions[i].walked, start_bytes(&code->regions[i]));
        }
    }
    if (code->regions) {
        hfn_free_memory(env, code->regions, code->capacity * sizeof *code->regions);
    }
    *code = (hfn_code){ 0 };
}

const hfn_region *hfn_code_region(const hfn_code *code, uint64_t rva)
{
    size_t low = hfn_count_up_to(code->regions, code->count, sizeof *code->regions,
                                 offsetof(hfn_region, end), rva);

    return low < code->count && hfn_region_has(&code->regions[low], rva) ? &code->regions[low]
                                                                         : NULL;
}

/* The four bits of each byte are in the order of the bytes, so 16 bytes are checked together. */
uint64_t hfn_region_next_marked(const hfn_region *region, uint64_t rva)
{
    while (rva < region->end) {
        uint64_t offset = rva - region->rva, place = offset % 16;
        if (region->end - rva < 16 - place) {
            if (hfn_region_marks(region, rva)) {
                return rva;
            }
            rva++;
            continue;
        }
        uint64_t marks = hfn_read_le64(region->marks + (offset - place) / 2) >> 4 * place;
        if (marks != 0) {
            return rva + (uint64_t)__builtin_ctzll(marks) / 4;
        }
        rva += 16 - place;
    }
    return rva;
}

void hfn_code_mark(const hfn_code *code, uint64_t rva, uint32_t marks)
{
    const hfn_region *region = hfn_code_region(code, rva);

    if (region) {
        hfn_region_mark(region, rva, marks);
    }
}

uint32_t hfn_code_marks(const hfn_code *code, uint64_t rva)
{
    const hfn_region *region = hfn_code_region(code, rva);

    return region ? hfn_region_marks(region, rva) : 0;
}
