/* SPDX-License-Identifier: MIT */
/* A bitmap of the loaded data of an image. */
#include "verdicts/references.h"

#include "image/image.h"

#define WORD_SPAN (64u * HFN_REFERENCE_BYTES) /* bytes of data that one word describes */

static size_t word_count(const hfn_references *r)
{
    return (size_t)((r->end - r->rva + WORD_SPAN - 1) / WORD_SPAN);
}

/* Set the range from the lowest to the highest data section.  A section that would make it more
 * than twice as large as the file is ignored. */
static void find_extent(hfn_references *r, const hotfn_image *image)
{
    uint32_t wanted = HOTFN_SECTION_LOADED,
             unwanted = HOTFN_SECTION_EXECUTE | HOTFN_SECTION_NO_BYTES;
    uint64_t limit = 2 * hfn_image_file(image).size;

    r->rva = r->end = 0;
    for (uint32_t i = 0; i < hotfn_image_get_section_count(image); i++) {
        hotfn_section s = HOTFN_SECTION_INIT;
        if (hotfn_image_get_section(image, i, &s) != HOTFN_OK || (s.flags & wanted) != wanted ||
            (s.flags & unwanted) || s.file_bytes == 0) {
            continue;
        }
        uint64_t low = r->end == 0 || s.rva < r->rva ? s.rva : r->rva;
        uint64_t high = s.rva + s.file_bytes > r->end ? s.rva + s.file_bytes : r->end;
        if (high > low && high - low <= limit) {
            r->rva = low;
            r->end = high;
        }
    }
}

bool hfn_references_init(hfn_references *r, const hotfn_image *image, const hotfn_env *env)
{
    find_extent(r, image);
    r->words = hfn_allocate_zeroed(env, word_count(r) * sizeof *r->words);
    return r->words != NULL;
}

void hfn_references_finish(hfn_references *r, const hotfn_env *env)
{
    if (r->words) {
        hfn_free_memory(env, r->words, word_count(r) * sizeof *r->words);
    }
    r->words = NULL;
}

uint64_t hfn_references_next(const hfn_references *r, uint64_t rva)
{
    uint64_t first = (rva - r->rva) / HFN_REFERENCE_BYTES + 1;
    uint64_t word, bits;

    if (rva - r->rva >= r->end - r->rva) {
        return UINT64_MAX;
    }
    for (word = first / 64; word < word_count(r); word++) {
        bits = __atomic_load_n(&r->words[word], __ATOMIC_RELAXED);
        if (word == first / 64) {
            bits &= UINT64_MAX << (first % 64);
        }
        if (bits) {
            return r->rva + (word * 64 + (uint64_t)__builtin_ctzll(bits)) * HFN_REFERENCE_BYTES;
        }
    }
    return r->end;
}
