/* SPDX-License-Identifier: MIT */
/* The pages of text that a batch writes. */
#ifndef HFN_HOOKS_PAGES_H
#define HFN_HOOKS_PAGES_H

#include "hooks/hookset.h"
#include "hooks/patch_spans.h"

/* Make private copies of the pages in few system calls instead of one page fault each.
 * batch->targets selects the sites.  Returns the size of the pages that had no private copy
 * before. */
uint64_t hfn_pages_populate(const hotfn_hooks *hooks, const hfn_batch *batch,
                            hfn_patch_spans *spans);

#endif
