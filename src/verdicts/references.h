/* SPDX-License-Identifier: MIT */
/* Which data addresses the code names.  Where one object's address is named, the object before it has
 * ended: that bounds jump tables of which the code shows no count. */
#ifndef HFN_VERDICTS_REFERENCES_H
#define HFN_VERDICTS_REFERENCES_H

#include "base/memory.h"

#include <hotfn/lowlevel/image.h>

#define HFN_REFERENCE_BYTES 4u /* told apart; tables are aligned to as much */

/* One bit for each HFN_REFERENCE_BYTES from rva to end.  Any thread may add at any time. */
typedef struct hfn_references {
    uint64_t rva, end;
    uint64_t *words;
} hfn_references;

/* Room for the data of image, empty.  False if there is no memory. */
bool hfn_references_init(hfn_references *r, const hotfn_image *image, const hotfn_env *env);
void hfn_references_finish(hfn_references *r, const hotfn_env *env);

static inline void hfn_references_add(const hfn_references *r, uint64_t rva)
{
    uint64_t offset = rva - r->rva;
    uint64_t bit = 1ull << (offset / HFN_REFERENCE_BYTES % 64);

    if (offset >= r->end - r->rva) {
        return;
    }
    uint64_t *word = &r->words[offset / HFN_REFERENCE_BYTES / 64];
    /* Relaxed: read after the scanning threads were joined. */
    if (!(__atomic_load_n(word, __ATOMIC_RELAXED) & bit)) {
        __atomic_fetch_or(word, bit, __ATOMIC_RELAXED);
    }
}

/* The first address behind rva that is named (rounded down to HFN_REFERENCE_BYTES); the end of the data
 * if there is none; UINT64_MAX if rva is no data. */
uint64_t hfn_references_next(const hfn_references *r, uint64_t rva);

#endif
