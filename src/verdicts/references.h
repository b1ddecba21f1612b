/* SPDX-License-Identifier: MIT */
/* The data addresses that code refers to.  A referenced address begins an object, which ends the
 * object before it: that limits jump tables whose size the code does not show. */
#ifndef HFN_VERDICTS_REFERENCES_H
#define HFN_VERDICTS_REFERENCES_H

#include "base/memory.h"

#include <hotfn/lowlevel/image.h>

#define HFN_REFERENCE_BYTES 4u /* granularity; tables are aligned to it */

/* One bit for each HFN_REFERENCE_BYTES in [rva, end).  Any thread may add one at any time. */
typedef struct hfn_references {
    uint64_t rva, end;
    uint64_t *words;
} hfn_references;

/* Create an empty bitmap for the data of an image; false if there is no memory. */
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
    /* Relaxed: joining the worker threads orders it before it is read. */
    if (!(__atomic_load_n(word, __ATOMIC_RELAXED) & bit)) {
        __atomic_fetch_or(word, bit, __ATOMIC_RELAXED);
    }
}

/* The first referenced address after rva, rounded down to HFN_REFERENCE_BYTES; the end of the
 * data if there is none; UINT64_MAX if rva is not in the data. */
uint64_t hfn_references_next(const hfn_references *r, uint64_t rva);

#endif
