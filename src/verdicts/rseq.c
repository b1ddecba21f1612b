/* SPDX-License-Identifier: MIT */
/*
 * Restartable sequences: the kernel compares a thread's PC with the ranges in __rseq_cs (Linux,
 * include/uapi/linux/rseq.h: struct rseq_cs, 32 bytes) and restarts the thread at the abort
 * address.  Moved code would be outside the range and no longer restarted, so functions that
 * contain one are refused.
 */
#include "verdicts/analysis.h"

#define ENTRY_BYTES 32u
#define START_AT 8u
#define LENGTH_AT 16u
#define ABORT_AT 24u
#define SHT_RELA_NUMBER 4u /* System V gABI ch. 4: sh_type         */
#define RELA_BYTES 24u     /* Elf64_Rela: r_offset, r_info, r_addend */

/* The addend of the relocation at a link address, 0 if there is none. */
static uint64_t relocated_word(const hotfn_image *image, uint64_t address)
{
    for (uint32_t i = 0; i < hfn_elf_section_count(image); i++) {
        const hfn_elf_section *section = hfn_elf_section_at(image, i);
        if (section->type != SHT_RELA_NUMBER) {
            continue;
        }
        hfn_span bytes = hfn_elf_section_bytes(image, section);
        for (uint64_t at = 0; hfn_span_has(bytes, at, RELA_BYTES); at += RELA_BYTES) {
            uint64_t offset = 0, addend = 0;
            hfn_span_u64(bytes, at, &offset);
            hfn_span_u64(bytes, at + 16, &addend);
            if (offset == address) {
                return addend;
            }
        }
    }
    return 0;
}

/* Read a code address of the table, from the word or from its relocation. */
static bool read_address(const hotfn_image *image, const hfn_elf_section *section, hfn_span bytes,
                         uint64_t at, uint64_t *rva)
{
    uint64_t word = 0;

    if (!hfn_span_u64(bytes, at, &word)) {
        return false;
    }
    if (word == 0) {
        word = relocated_word(image, section->address + at);
    }
    return word != 0 && hfn_image_rva(image, word, rva);
}

static void mark_range(hfn_analysis *a, uint64_t from, uint64_t to)
{
    uint32_t i = hfn_analysis_find_body(a, from);

    for (i = i > 0 ? i - 1 : 0; i < a->count && a->bodies[i].rva < to; i++) {
        if (a->bodies[i].end > from) {
            a->bodies[i].traits |= HFN_TRAIT_RSEQ;
        }
    }
}

void hfn_rseq_prepare(hfn_analysis *a)
{
    const hfn_elf_section *section = hfn_elf_section_named(a->image, "__rseq_cs");

    if (!section) {
        return;
    }
    hfn_span bytes = hfn_elf_section_bytes(a->image, section);
    for (uint64_t at = 0; hfn_span_has(bytes, at, ENTRY_BYTES); at += ENTRY_BYTES) {
        uint64_t start = 0, length = 0, abort_rva = 0;
        if (read_address(a->image, section, bytes, at + START_AT, &start) &&
            hfn_span_u64(bytes, at + LENGTH_AT, &length) && length < a->info.loaded_bytes) {
            mark_range(a, start, start + length + 1);
        }
        if (read_address(a->image, section, bytes, at + ABORT_AT, &abort_rva)) {
            mark_range(a, abort_rva, abort_rva + 1);
        }
    }
}
