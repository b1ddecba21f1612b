/* SPDX-License-Identifier: MIT */
/* Call sites: direct calls and jumps of a module that are redirected to the stubs of a batch. */
#ifndef HFN_HOOKS_SITES_H
#define HFN_HOOKS_SITES_H

#include "hooks/hookset.h"
#include "hooks/patch_spans.h"

/* Whether call sites may be redirected to this batch's stubs.  A stub is then entered with the
 * caller's return address on the stack, as through the patch of the entry. */
bool hfn_sites_wanted(const hotfn_hooks *hooks, const hfn_batch *batch);

/* Allocate the targets of a batch, before other threads are stopped.  False if there is no
 * memory. */
bool hfn_sites_begin(hotfn_hooks *hooks, hfn_batch *batch);
/* Set the target for a hook whose stub was just written. */
void hfn_sites_set_target(const hotfn_hooks *hooks, hfn_batch *batch, uint32_t index, uint32_t rva,
                          uint64_t entry_address);
/* For a batch whose stubs exist already: allocate and set the targets of the hooks with
 * (hooks[i] & mask) == wanted. */
bool hfn_sites_prepare(hotfn_hooks *hooks, hfn_batch *batch, uint32_t mask, uint32_t wanted);
void hfn_sites_finish(hotfn_hooks *hooks, hfn_batch *batch);

/* Redirect the tail exits of the batch's functions to the fronts of their stubs
 * (arch/x86/emit_tail_exit.c), before any other site is written.  A hook with a tail exit that
 * differs from the file becomes BLOCKED.  Tail exits are never restored, because a timed call may
 * be open; if none is open, the front of the stub jumps to the original target. */
void hfn_sites_write_tail_exits(const hotfn_hooks *hooks, hfn_batch *batch,
                                const hfn_patch_spans *spans);

/* Redirect all call sites of functions with a target.  A site that differs from the file, or that
 * cannot reach its stub, is left alone.  Adds to batch->sites_written. */
void hfn_sites_write(const hotfn_hooks *hooks, hfn_batch *batch, const hfn_patch_spans *spans);
/* Restore the call sites of the functions with a target.  Returns the number of those that are not
 * writable now. */
uint32_t hfn_sites_restore_some(const hotfn_hooks *hooks, hfn_batch *batch,
                                const hfn_patch_spans *spans);
/* Restore all redirected call sites.  Returns the number of call sites that are not writable now
 * and stay redirected until the next removal.  Adds the number of call sites that other code has
 * changed to *foreign. */
uint32_t hfn_sites_restore(const hotfn_hooks *hooks, hfn_batch *batch, const hfn_patch_spans *spans,
                           uint32_t *foreign);

#endif
