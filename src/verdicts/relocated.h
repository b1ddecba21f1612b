/* SPDX-License-Identifier: MIT */
/* Relocated addresses in the instructions of 32-bit Windows images. */
#ifndef HFN_VERDICTS_RELOCATED_H
#define HFN_VERDICTS_RELOCATED_H

#include "arch/arch.h"

typedef struct hfn_relocated {
    uint64_t *fields; /* RVAs of fields of four bytes in code, sorted by hfn_relocated_sort */
    size_t count, capacity;
    uint64_t link_base;
} hfn_relocated;

void hfn_relocated_sort(hfn_relocated *relocated);
/* Does a field begin in [from, to)? */
bool hfn_relocated_begins(const hfn_relocated *relocated, uint64_t from, uint64_t to);
bool hfn_relocated_overlaps(const hfn_relocated *relocated, uint64_t from, uint64_t to);
/* Add a fixup to the moved code for each field among the original bytes, which begin at rva.  False
 * if one of them cannot be rewritten. */
bool hfn_relocated_add_fixups(const hfn_relocated *relocated, const uint8_t *bytes, uint64_t rva,
                              hfn_moved *moved);

#endif
