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

#endif
