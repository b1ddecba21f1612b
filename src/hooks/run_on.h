/* SPDX-License-Identifier: MIT */
/* Stubs that go on with the function's own code for a while before they jump back (arch.h, run_on). */
#ifndef HFN_HOOKS_RUN_ON_H
#define HFN_HOOKS_RUN_ON_H

#include "hooks/hookset.h"

/* For the hooks of a batch that is about to get stubs: how long their moved code becomes.  Without memory
 * for that they stay as they are. */
void hfn_run_on_measure(hotfn_hooks *hooks, hfn_batch *batch);

/* Write a hook's moved code, of hook->run_bytes, for the place `address`; false if that cannot be. */
bool hfn_run_on_write(uint8_t *out, uint64_t address, const hfn_plan_hook *hook, uint64_t base);

#endif
