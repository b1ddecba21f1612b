/* SPDX-License-Identifier: MIT */
/*
 * Second stubs, for direct calls while one thread alone counts: they count at a fixed address, in that
 * thread's row, and need no register and no test.  Whoever comes by the entry's patch counts in the row of
 * its thread as ever.  When a second thread is there each of them becomes a jump to the first stub
 * (hotfn_turn of hooks.h).
 */
#ifndef HFN_HOOKS_SOLE_H
#define HFN_HOOKS_SOLE_H

#include "hooks/near_pages.h"
#include "hooks/windows.h"

/* Make those of a batch that just got its stubs; none, if that cannot be.  False: no memory for tables. */
bool hfn_sole_build(hotfn_hooks *hooks, hfn_batch *batch, hfn_region_list *added);

/* Which functions' code is only ever reached by an entry that is patched now: a bit for each of the plan's
 * entries whose hook counts and stands.  In two steps, as nothing is allocated while patches are written. */
bool hfn_sole_prepare_callers(hotfn_hooks *hooks, hfn_batch *batch);
void hfn_sole_find_callers(const hotfn_hooks *hooks, hfn_batch *batch);

/* Does the branch at rva stand in such a function?  *own, at first 0, goes on with rising rva. */
bool hfn_sole_may_call(const hotfn_hooks *hooks, const hfn_batch *batch, uint32_t rva, uint32_t *own);

#endif
