/* SPDX-License-Identifier: MIT */
/*
 * The dynamic section (System V gABI ch. 5): the tables that the loader itself uses, found by
 * address.  They exist even in a file without section headers.
 */
#include "image/inside.h"

static hfn_span dynamic_bytes(const hotfn_image *image)
{
    uint64_t rva, bytes;

    if (hfn_elf_segment_of_type(image, HFN_PT_DYNAMIC, &rva, &bytes)) {
        hfn_span s = hfn_image_span(image, rva);
        return hfn_span_sub(s, 0, bytes < s.size ? bytes : s.size);
    }
    return (hfn_span){ NULL, 0, false };
}

bool hfn_elf_dynamic(const hotfn_image *image, uint64_t tag, uint64_t *value)
{
    hfn_span dynamic = dynamic_bytes(image);
    uint32_t word = image->word_bytes;
    uint64_t this_tag, this_value;

    for (uint64_t at = 0; hfn_span_word(dynamic, at, word, &this_tag) &&
                          hfn_span_word(dynamic, at + word, word, &this_value);
         at += 2 * word) {
        if (this_tag == HFN_DT_NULL) {
            return false;
        }
        if (this_tag == tag) {
            *value = this_value;
            return true;
        }
    }
    return false;
}

hfn_span hfn_elf_dynamic_span(const hotfn_image *image, uint64_t tag, uint64_t size_tag)
{
    hfn_span none = { NULL, 0, image->bytes.big_endian };
    uint64_t address, bytes, rva;

    if (!hfn_elf_dynamic(image, tag, &address) || !hfn_elf_dynamic(image, size_tag, &bytes) ||
        !hfn_image_rva(image, address, &rva)) {
        return none;
    }
    return hfn_span_sub(hfn_image_span(image, rva), 0, bytes);
}

hfn_span hfn_elf_dynamic_table(const hotfn_image *image, uint64_t tag)
{
    hfn_span none = { NULL, 0, image->bytes.big_endian };
    uint64_t address, rva;

    if (!hfn_elf_dynamic(image, tag, &address) || !hfn_image_rva(image, address, &rva)) {
        return none;
    }
    return hfn_image_span(image, rva);
}

/* The last chain ends at the last symbol: an entry with bit 0 set ends a chain (the 'GNU hash'
 * notes of the LSB's successor, and glibc's elf/dl-lookup.c, which reads it so). */
static uint64_t count_by_gnu_hash(const hotfn_image *image)
{
    hfn_span table = hfn_elf_dynamic_table(image, HFN_DT_GNU_HASH);
    uint32_t buckets, first, bloom_words, bucket, hash;
    uint64_t chains, last = 0;

    if (!hfn_span_u32(table, 0, &buckets) || !hfn_span_u32(table, 4, &first) ||
        !hfn_span_u32(table, 8, &bloom_words)) {
        return 0;
    }
    chains = 16 + (uint64_t)bloom_words * image->word_bytes + 4 * (uint64_t)buckets;
    for (uint64_t i = 0; i < buckets; i++) {
        if (!hfn_span_u32(table, chains - 4 * (uint64_t)buckets + 4 * i, &bucket)) {
            return 0;
        }
        last = bucket > last ? bucket : last;
    }
    if (last < first) {
        return first;
    }
    while (hfn_span_u32(table, chains + 4 * (last - first), &hash) && !(hash & 1)) {
        last++;
    }
    return last + 1;
}

uint64_t hfn_elf_dynamic_symbol_count(const hotfn_image *image)
{
    uint32_t chains;

    if (hfn_span_u32(hfn_elf_dynamic_table(image, HFN_DT_HASH), 4, &chains)) {
        return chains; /* gABI ch. 5, 'Hash Table': nchain is the number of symbols */
    }
    return count_by_gnu_hash(image);
}

/* If all symbols are bound at load time, .got.plt and DT_PLTGOT may be missing. */
uint64_t hfn_image_pic_base(const hotfn_image *image)
{
    static const char *const sections[] = { ".got.plt", ".got" };
    uint64_t address, rva;

    if (image->info.machine != HOTFN_MACHINE_X86) {
        return 0;
    }
    if (hfn_elf_dynamic(image, HFN_DT_PLTGOT, &address) && hfn_image_rva(image, address, &rva)) {
        return rva;
    }
    for (size_t i = 0; i < HFN_COUNT_OF(sections); i++) {
        const hfn_elf_section *s = hfn_elf_section_named(image, sections[i]);
        if (s && hfn_image_rva(image, s->address, &rva)) {
            return rva;
        }
    }
    return 0;
}
