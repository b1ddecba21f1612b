/* SPDX-License-Identifier: MIT */
/* What an attach needs of a process before it begins. */
#ifndef HFN_LAUNCH_RELEASE_H
#define HFN_LAUNCH_RELEASE_H

#include <hotfn/env.h>
#include <hotfn/status.h>

#include <stdbool.h>

/* Check that the process can be attached to.  What a hotfn that was killed has left in it is
 * removed; the counts are saved as record_path and ".killed", unless it is NULL. */
hotfn_status hfn_release_before_attach(uint32_t pid, const char *record_path, const hotfn_env *env,
                                       hotfn_error *err);
/* Does another hotfn count the process (HOTFN_E_STATE, HOTFN_E_MISMATCH), or has a hotfn that was
 * killed left something in it (*is_left)?  Nothing is changed. */
hotfn_status hfn_release_find_other(uint32_t pid, bool *is_left, const hotfn_env *env,
                                    hotfn_error *err);

#endif
