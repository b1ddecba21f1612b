/* SPDX-License-Identifier: MIT */
/* Places stubs: one region near the module for its new hooks, and a separate region for each punned
 * jump, because the bytes that the jump shares with the function limit its target. */
#ifndef HFN_HOOKS_NEAR_PAGES_H
#define HFN_HOOKS_NEAR_PAGES_H

#include "hooks/hookset.h"

/* New regions, which are published before the first patch. */
typedef struct hfn_region_list {
    hotfn_stub_region *regions;
    size_t count, capacity;
} hfn_region_list;

/* Write the stubs of the module's pending batches.  Hooks without a possible place are refused.
 * False if there is no memory for tables. */
bool hfn_near_pages_build(hotfn_hooks *hooks, uint32_t module, hfn_region_list *added);

/* Reuse the stubs of a retired batch that have the same bytes as the stubs of this batch would
 * have.  False if there is no such batch. */
bool hfn_near_pages_reuse(hotfn_hooks *hooks, hfn_batch *batch);

#endif
