/* SPDX-License-Identifier: MIT */
/* Call sites: direct calls and jumps of a module that are sent straight to the stubs of a batch. */
#ifndef HFN_HOOKS_SITES_H
#define HFN_HOOKS_SITES_H

#include "hooks/hookset.h"
#include "hooks/windows.h"

/* May callers be sent to this batch's stubs?  A stub then runs in place of the function, with the
 * caller's return address on the stack, as behind the entry's jump. */
bool hfn_sites_wanted(const hotfn_hooks *hooks, const hfn_batch *batch);

/* Before other threads are stopped: make room for targets, where sites are wanted (false if there is no
 * memory), and note where each stub is entered while stubs are written ... */
bool hfn_sites_begin(hotfn_hooks *hooks, hfn_batch *batch);
void hfn_sites_note(const hotfn_hooks *hooks, hfn_batch *batch, uint32_t index, uint32_t rva,
                    uint64_t entry_address);
/* ... or, if there is no room yet, do both for the stubs that there are, of the hooks with
 * (hooks[i] & mask) == wanted. */
bool hfn_sites_prepare(hotfn_hooks *hooks, hfn_batch *batch, uint32_t mask, uint32_t wanted);
void hfn_sites_finish(hotfn_hooks *hooks, hfn_batch *batch);

/* Send the jumps of the batch's functions that must come back to the fronts of their stubs (arch/x86/
 * emit_tail_exit.c), before any other site is written; where one is not as in the file, the hook STAYS.  They are
 * never taken back: a call may be open, and who comes by without one just goes on. */
void hfn_sites_send_back(const hotfn_hooks *hooks, hfn_batch *batch, const hfn_windows *windows);

/* Send all that lead to noted stubs there; the bytes of one that is not as in the file, or that cannot
 * reach its stub, stay.  Adds to batch->sites_written. */
void hfn_sites_write(const hotfn_hooks *hooks, hfn_batch *batch, const hfn_windows *windows);
/* Back to the functions.  Answers how many of those written stand where nobody can write now: they stay, and are written
 * back the next time.  Adds to *foreign how many are somebody else's. */
uint32_t hfn_sites_restore(const hotfn_hooks *hooks, hfn_batch *batch, const hfn_windows *windows,
                           uint32_t *foreign);

#endif
