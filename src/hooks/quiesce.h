/* SPDX-License-Identifier: MIT */
/* Runs work while no thread executes the bytes that it changes. */
#ifndef HFN_HOOKS_QUIESCE_H
#define HFN_HOOKS_QUIESCE_H

#include "hooks/hookset.h"
#include "os/os.h"

/* Call work with all other threads stopped, none of them inside the bytes of pending batches
 * (to_remove: of patched ones).  False if a thread could not be stopped in several attempts: work
 * was not called. */
bool hfn_run_quiesced(hotfn_hooks *hooks, bool to_remove, hfn_quiesced_fn work, void *user);

#endif
