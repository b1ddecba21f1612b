/* SPDX-License-Identifier: MIT */
/* Where stubs go: one region near the module for all of its new hooks, and one of its own for each
 * punned jump, which can only go where the bytes that stand there send it. */
#ifndef HFN_HOOKS_NEAR_PAGES_H
#define HFN_HOOKS_NEAR_PAGES_H

#include "hooks/hookset.h"

/* New regions, to be published before the first patch. */
typedef struct hfn_region_list {
    hotfn_stub_region *regions;
    size_t count, capacity;
} hfn_region_list;

/* Make the stubs of the module's pending batches.  Hooks for which there is no place are refused.
 * False if there is no memory for tables. */
bool hfn_near_pages_build(hotfn_hooks *hooks, uint32_t module, hfn_region_list *added);

/* A batch that was hooked and removed before has the stubs that this one needs: take them over.  They
 * are compared byte by byte with what would be written. */
bool hfn_near_pages_reuse(hotfn_hooks *hooks, hfn_batch *batch);

#endif
