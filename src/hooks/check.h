/* SPDX-License-Identifier: MIT */
#ifndef HFN_HOOKS_CHECK_H
#define HFN_HOOKS_CHECK_H

#include <hotfn/lowlevel/hooks.h>
#include <stdbool.h>

/* Visit each hook whose patch other code has overwritten, with HOTFN_REASON_OVERWRITTEN.  False if
 * some patches could not be read.  No commit, removal or forgetting at the same time. */
bool hfn_hooks_check(const hotfn_hooks *hooks, hotfn_refused_fn visit, void *user);

#endif
