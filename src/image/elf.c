/* SPDX-License-Identifier: MIT */
/*
 * The ELF header and the program headers (System V gABI ch. 4 and 5), for both classes and byte
 * orders and every machine.  An impossible number (a table outside the file, a segment that wraps
 * around the address space) is an error with the offset of that number.  elf_sections.c reads the
 * sections.
 */
#include "image/inside.h"

#include <string.h>

enum { PAGE_BYTES = 4096, MAX_SEGMENTS = 1 << 16 };

/* The fields of the ELF header that the other functions need. */
typedef struct elf_header {
    uint16_t type, machine;
    uint64_t entry, segment_offset, section_offset;
    uint16_t segment_bytes, segment_count, section_bytes, section_count, names_index;
} elf_header;

static hotfn_status fail_format(const hotfn_image *image, hotfn_error *err, uint64_t offset,
                                const char *text)
{
    return hfn_report_error(err, HOTFN_E_FORMAT, image->info.path, offset, "%s", text);
}

/* The file is not ELF: name the format that it has. */
static hotfn_status fail_other_format(const hotfn_image *image, hotfn_error *err)
{
    hfn_span s = image->bytes;

    if (s.size == 0) {
        return fail_format(image, err, 0, "the file is empty");
    }
    if (s.size >= 2 && memcmp(s.data, "#!", 2) == 0) {
        uint64_t begin = 2, end;
        while (begin < s.size && s.data[begin] == ' ') {
            begin++;
        }
        for (end = begin; end < s.size && end < begin + 200 && s.data[end] >= ' ';) {
            end++;
        }
        return hfn_report_error(err, HOTFN_E_FORMAT, image->info.path, 0,
                                "not a program but a script: name its interpreter (%.*s) instead",
                                (int)(end - begin), (const char *)s.data + begin);
    }
    return fail_format(image, err, 0,
                       "neither an ELF nor a PE file: give a program or a shared library");
}

static hotfn_status read_ident(hotfn_image *image, hotfn_error *err)
{
    const uint8_t *ident = image->bytes.data;

    if (image->bytes.size < 4 || memcmp(ident, "\177ELF", 4) != 0) {
        return fail_other_format(image, err);
    }
    if (image->bytes.size < 16) {
        return fail_format(image, err, 4, "truncated inside its ELF header");
    }
    if (ident[4] != 1 && ident[4] != 2) {
        return fail_format(image, err, 4, "wrong ELF class: neither 32-bit nor 64-bit");
    }
    if (ident[5] != 1 && ident[5] != 2) {
        return fail_format(image, err, 5, "wrong ELF byte order: neither little nor big endian");
    }
    if (ident[6] != 1) {
        return fail_format(image, err, 6, "an ELF version other than 1");
    }
    image->word_bytes = ident[4] == 2 ? 8 : 4;
    image->bytes.big_endian = ident[5] == 2;
    image->info.bits = image->word_bytes * 8;
    image->info.flags |= image->bytes.big_endian ? HOTFN_IMAGE_BIG_ENDIAN : 0;
    return HOTFN_OK;
}

static bool read_header(const hotfn_image *image, elf_header *h)
{
    hfn_span s = image->bytes;
    uint32_t word = image->word_bytes;
    uint64_t tail = 24 + 3 * (uint64_t)word + 4; /* e_ehsize, behind e_flags */

    return hfn_span_u16(s, 16, &h->type) && hfn_span_u16(s, 18, &h->machine) &&
           hfn_span_word(s, 24, word, &h->entry) &&
           hfn_span_word(s, 24 + word, word, &h->segment_offset) &&
           hfn_span_word(s, 24 + 2 * (uint64_t)word, word, &h->section_offset) &&
           hfn_span_u16(s, tail + 2, &h->segment_bytes) &&
           hfn_span_u16(s, tail + 4, &h->segment_count) &&
           hfn_span_u16(s, tail + 6, &h->section_bytes) &&
           hfn_span_u16(s, tail + 8, &h->section_count) &&
           hfn_span_u16(s, tail + 10, &h->names_index);
}

/* x32 and AArch64 ILP32 share the machine number of the 64-bit ABI but have 32-bit pointers, and
 * the data of big-endian AArch64 has another byte order than its code.  They are OTHER, so that no
 * decoder applies the wrong rules. */
static uint32_t machine_of(uint16_t machine, uint32_t bits, bool big_endian)
{
    if (machine == HFN_EM_386 && bits == 32 && !big_endian) {
        return HOTFN_MACHINE_X86;
    }
    if (machine == HFN_EM_X86_64 && bits == 64 && !big_endian) {
        return HOTFN_MACHINE_X86_64;
    }
    if (machine == HFN_EM_ARM && bits == 32) {
        return HOTFN_MACHINE_ARM;
    }
    if (machine == HFN_EM_AARCH64 && bits == 64 && !big_endian) {
        return HOTFN_MACHINE_ARM64;
    }
    return HOTFN_MACHINE_OTHER;
}

static hotfn_status check_type(const hotfn_image *image, const elf_header *h, hotfn_error *err)
{
    if (h->type == HFN_ET_REL) {
        return hfn_report_error(
            err, HOTFN_E_UNSUPPORTED, image->info.path, 16,
            "an object file that is not linked yet: give the program or library");
    }
    if (h->type == HFN_ET_CORE) {
        return hfn_report_error(err, HOTFN_E_UNSUPPORTED, image->info.path, 16,
                                "a core dump: give the program that it came from");
    }
    if (h->type != HFN_ET_EXEC && h->type != HFN_ET_DYN) {
        return fail_format(image, err, 16, "neither a program nor a shared library");
    }
    return HOTFN_OK;
}

/* gABI ch. 4, 'ELF Header': counts that do not fit into the header are stored in section 0. */
typedef struct elf_counts {
    uint64_t segments, sections;
    uint32_t names_index;
} elf_counts;

static bool read_counts(const hotfn_image *image, const elf_header *h, elf_counts *counts)
{
    hfn_elf_section first;
    uint32_t ignored;

    *counts = (elf_counts){ h->segment_count, h->section_count, h->names_index };
    if (h->section_offset == 0) {
        counts->sections = 0;
        return h->segment_count != HFN_PN_XNUM;
    }
    if (h->section_count != 0 && h->segment_count != HFN_PN_XNUM &&
        h->names_index != HFN_SHN_XINDEX) {
        return true;
    }
    if (!hfn_elf_read_section(image, h->section_offset, &first, &ignored)) {
        return false;
    }
    if (h->section_count == 0) {
        counts->sections = first.size;
    }
    if (h->segment_count == HFN_PN_XNUM) {
        counts->segments = first.info;
    }
    if (h->names_index == HFN_SHN_XINDEX) {
        counts->names_index = first.link;
    }
    return true;
}

/* The two classes order the fields of a program header differently. */
static bool read_segment(const hotfn_image *image, uint64_t at, hfn_segment *out)
{
    hfn_span s = image->bytes;
    uint32_t word = image->word_bytes;
    uint64_t flags_at = word == 8 ? at + 4 : at + 24, alignment;
    uint64_t words_at = word == 8 ? at + 8 : at + 4;

    if (!hfn_span_u32(s, at, &out->type) || !hfn_span_u32(s, flags_at, &out->flags) ||
        !hfn_span_word(s, words_at, word, &out->offset) ||
        !hfn_span_word(s, words_at + word, word, &out->address) ||
        !hfn_span_word(s, words_at + 3 * word, word, &out->file_bytes) ||
        !hfn_span_word(s, words_at + 4 * word, word, &out->memory_bytes) ||
        !hfn_span_word(s, word == 8 ? at + 48 : at + 28, word, &alignment)) {
        return false;
    }
    out->alignment = alignment > UINT32_MAX ? 0 : (uint32_t)alignment;
    return true;
}

static hotfn_status read_segments(hotfn_image *image, const elf_header *h, uint64_t count,
                                  hotfn_error *err)
{
    uint32_t min_bytes = image->word_bytes == 8 ? 56 : 32;

    if (count == 0) {
        return HOTFN_OK;
    }
    if (h->segment_bytes < min_bytes) {
        return fail_format(image, err, 24, "program header entries are too small");
    }
    if (count > MAX_SEGMENTS) {
        return hfn_report_error(err, HOTFN_E_LIMIT, image->info.path, 24,
                                "more than 65536 segments");
    }
    if (!hfn_span_has(image->bytes, h->segment_offset, count * h->segment_bytes)) {
        return fail_format(image, err, h->segment_offset,
                           "its program headers lie outside the file: it is truncated or damaged");
    }
    image->segments = hfn_arena_alloc(&image->arena, (size_t)count * sizeof *image->segments);
    if (!image->segments) {
        return hfn_image_no_memory(image, err);
    }
    image->segment_count = (uint32_t)count;
    for (uint32_t i = 0; i < count; i++) {
        read_segment(image, h->segment_offset + (uint64_t)i * h->segment_bytes,
                     &image->segments[i]);
    }
    return HOTFN_OK;
}

/* The bytes of a separate debug file's segments are gone, whatever their headers say (objcopy
 * --only-keep-debug clears the sizes, eu-strip -f does not). */
static bool is_debug_only(const hotfn_image *image)
{
    for (uint32_t i = 0; i < image->section_count; i++) {
        const hfn_elf_section *s = &image->sections[i];
        if ((s->flags & HFN_SHF_EXECINSTR) && s->type == HFN_SHT_NOBITS && s->size > 0) {
            return true;
        }
    }
    return false;
}

static hotfn_status check_load(const hotfn_image *image, hfn_segment *load, hotfn_error *err)
{
    uint64_t last = image->word_bytes == 8 ? UINT64_MAX : UINT32_MAX;

    if (image->debug_only) {
        load->file_bytes = 0;
    }
    if (load->file_bytes > load->memory_bytes) {
        return fail_format(image, err, load->offset,
                           "a segment has more bytes in the file than in memory");
    }
    if (load->memory_bytes > last - load->address) {
        return fail_format(image, err, load->offset, "a segment reaches beyond the address space");
    }
    if (load->file_bytes && !hfn_span_has(image->bytes, load->offset, load->file_bytes)) {
        return hfn_report_error(
            err, HOTFN_E_FORMAT, image->info.path, load->offset,
            "truncated: a segment needs %llu bytes from here, the file ends at %llu",
            (unsigned long long)load->file_bytes, (unsigned long long)image->bytes.size);
    }
    return HOTFN_OK;
}

/* gABI ch. 5 requires ascending PT_LOAD entries, so in a valid file this insertion moves none. */
static void insert_load(hotfn_image *image, const hfn_segment *load)
{
    uint32_t at = image->load_count++;

    while (at > 0 && image->loads[at - 1].address > load->address) {
        image->loads[at] = image->loads[at - 1];
        at--;
    }
    image->loads[at] = *load;
}

static hotfn_status collect_loads(hotfn_image *image, hotfn_error *err)
{
    image->loads = hfn_arena_alloc(&image->arena, image->segment_count * sizeof *image->loads);
    if (!image->loads) {
        return hfn_image_no_memory(image, err);
    }
    for (uint32_t i = 0; i < image->segment_count; i++) {
        hfn_segment *segment = &image->segments[i];
        if (segment->type != HFN_PT_LOAD || segment->memory_bytes == 0) {
            continue;
        }
        hotfn_status status = check_load(image, segment, err);
        if (status != HOTFN_OK) {
            return status;
        }
        insert_load(image, segment);
    }
    if (image->load_count == 0) {
        return fail_format(image, err, 24, "no segment is ever loaded: nothing to count in it");
    }
    return HOTFN_OK;
}

/* Returns the size of the segment's tail.  The tail ends at the page of another segment or at a
 * byte that is not 0.  The last segment has no tail, because loaded_bytes ends with that
 * segment. */
static uint64_t tail_bytes(const hotfn_image *image, const hfn_segment *load)
{
    uint64_t end = load->address + load->memory_bytes, room = -end & (PAGE_BYTES - 1), count = 0;
    uint8_t byte;

    if (!(load->flags & HFN_PF_X) || (load->flags & HFN_PF_W) ||
        load->file_bytes != load->memory_bytes || load + 1 == image->loads + image->load_count ||
        load[1].address < end + room) {
        return 0;
    }
    while (count < room &&
           hfn_span_u8(image->bytes, load->offset + load->file_bytes + count, &byte) && byte == 0) {
        count++;
    }
    return count;
}

static void measure_loads(hotfn_image *image)
{
    uint64_t end = 0;

    image->info.link_base = image->loads[0].address & ~(uint64_t)(PAGE_BYTES - 1);
    for (uint32_t i = 0; i < image->load_count; i++) {
        hfn_segment *load = &image->loads[i];
        if (load->address + load->memory_bytes > end) {
            end = load->address + load->memory_bytes;
        }
        load->tail_bytes = tail_bytes(image, load);
    }
    image->info.loaded_bytes = end - image->info.link_base;
}

static void fill_info(hotfn_image *image, const elf_header *h)
{
    hotfn_image_info *info = &image->info;
    uint64_t value;

    info->format = HOTFN_FORMAT_ELF;
    info->machine = machine_of(h->machine, info->bits, image->bytes.big_endian);
    info->raw_machine = h->machine;
    if (h->entry && hfn_image_rva(image, h->entry, &info->entry_rva)) {
        info->flags |= HOTFN_IMAGE_EXECUTABLE;
    }
    if (h->type == HFN_ET_EXEC) {
        info->flags |= HOTFN_IMAGE_FIXED;
    }
    if (!hfn_elf_section_named(image, ".symtab")) {
        info->flags |= HOTFN_IMAGE_STRIPPED;
    }
    for (uint32_t i = 0; i < image->segment_count; i++) {
        const hfn_segment *segment = &image->segments[i];
        hfn_span bytes = hfn_span_sub(image->bytes, segment->offset, segment->file_bytes);
        if (segment->type == HFN_PT_DYNAMIC) {
            info->flags |= HOTFN_IMAGE_DYNAMIC;
        }
        if (segment->type == HFN_PT_INTERP && !image->debug_only) {
            info->interpreter = hfn_span_string(bytes, 0);
        }
    }
    info->flags |= info->interpreter ? HOTFN_IMAGE_INTERPRETER : 0;
    if (hfn_elf_dynamic(image, HFN_DT_TEXTREL, &value) ||
        (hfn_elf_dynamic(image, HFN_DT_FLAGS, &value) && (value & HFN_DF_TEXTREL))) {
        info->flags |= HOTFN_IMAGE_TEXTREL;
    }
}

hotfn_status hfn_elf_read(hotfn_image *image, hotfn_error *err)
{
    hotfn_status status = read_ident(image, err);
    elf_counts counts;
    elf_header h;

    if (status != HOTFN_OK) {
        return status;
    }
    if (!read_header(image, &h)) {
        return fail_format(image, err, 16, "truncated inside its ELF header");
    }
    if ((status = check_type(image, &h, err)) != HOTFN_OK) {
        return status;
    }
    if (!read_counts(image, &h, &counts)) {
        return fail_format(image, err, h.section_offset,
                           "its section headers lie outside the file: it is truncated or damaged");
    }
    if ((status = read_segments(image, &h, counts.segments, err)) != HOTFN_OK ||
        (status = hfn_elf_read_sections(image, h.section_offset, counts.sections, h.section_bytes,
                                        counts.names_index, err)) != HOTFN_OK) {
        return status;
    }
    image->debug_only = is_debug_only(image);
    if ((status = collect_loads(image, err)) != HOTFN_OK) {
        return status;
    }
    measure_loads(image);
    if ((status = hfn_elf_synthesise_sections(image, err)) != HOTFN_OK ||
        (status = hfn_address_index(image, err)) != HOTFN_OK) {
        return status;
    }
    fill_info(image, &h);
    hfn_image_find_id(image);
    return HOTFN_OK;
}
