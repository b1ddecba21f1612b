/* SPDX-License-Identifier: MIT */
/* Runs work while no thread executes the bytes that it changes. */
#ifndef HFN_HOOKS_QUIESCE_H
#define HFN_HOOKS_QUIESCE_H

#include "hooks/hookset.h"
#include "os/os.h"

/* Call work while all other threads are stopped and no thread is inside the bytes of pending
 * batches (to_remove: of patched batches).  False, without a call of work, if a thread could not be
 * stopped in several attempts. */
bool hfn_run_quiesced(hotfn_hooks *hooks, bool to_remove, hfn_quiesced_fn work, void *user);

/* For a set whose patches were written to a mirror and will be copied to the target: the address at
 * which a thread with this PC must continue. */
uint64_t hfn_hooks_move_pc(const hotfn_hooks *hooks, uint64_t pc);
/* Visit the islands that are in place until visit returns false; returns false if it did. */
typedef bool (*hfn_island_fn)(void *user, uint64_t island, uint64_t site);
bool hfn_hooks_each_island(const hotfn_hooks *hooks, hfn_island_fn visit, void *user);

#endif
