/* SPDX-License-Identifier: MIT */
/* The pages of text that a batch will write. */
#ifndef HFN_HOOKS_PAGES_H
#define HFN_HOOKS_PAGES_H

#include "hooks/hookset.h"
#include "hooks/windows.h"

/* Make private copies of them in few system calls (a fault for each would cost more); answers the bytes of
 * those that had none.  Batch->targets says which sites are meant. */
uint64_t hfn_pages_populate(const hotfn_hooks *hooks, const hfn_batch *batch, hfn_windows *windows);

#endif
