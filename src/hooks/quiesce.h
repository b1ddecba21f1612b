/* SPDX-License-Identifier: MIT */
/* Doing something while no thread stands on the bytes that change. */
#ifndef HFN_HOOKS_QUIESCE_H
#define HFN_HOOKS_QUIESCE_H

#include "hooks/hookset.h"
#include "os/os.h"

/* Run work with all other threads stopped and moved off the bytes of pending (or, to remove, of
 * standing) batches.  False if a thread could not be stopped in two attempts: nothing was run. */
bool hfn_quiesce(hotfn_hooks *hooks, bool to_remove, hfn_quiesced_fn work, void *user);

#endif
