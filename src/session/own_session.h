/* SPDX-License-Identifier: MIT */
/* Parts of a session that scans its own process: its options, its groups and its zones. */
#ifndef HFN_SESSION_OWN_SESSION_H
#define HFN_SESSION_OWN_SESSION_H

#include "session/session.h"

/* options.c: false if there is no memory. */
bool hfn_session_copy_options(hotfn_session *session, const hotfn_session_options *options,
                              const hotfn_selection *pick);
hotfn_status hfn_session_check_options(const hotfn_session *session,
                                       const hotfn_session_options *options, hotfn_error *err);
/* Copy a selection, and check its globs. */
hotfn_status hfn_session_copy_selection(hotfn_session *session, hotfn_selection *out,
                                        const hotfn_selection *selection, hotfn_error *err);

/* described.c: describe a loaded module, with a single system call if that was done before and its
 * file is still the same. */
bool hfn_session_describe(void *session, const hfn_os_module *module, hfn_plan_request *out);

/* own_groups.c: HOTFN_OK, HOTFN_E_OPTION, HOTFN_E_NO_MEMORY. */
hotfn_status hfn_session_copy_groups(hotfn_session *session, const hotfn_session_options *options,
                                     hotfn_error *err);
/* Find the groups of each function of the scan. */
hotfn_status hfn_session_find_members(hotfn_session *session, hfn_scanned *scanned,
                                      hotfn_error *err);

/* zone.c: add the module whose functions are the zones. */
hotfn_status hfn_session_add_zones(hotfn_session *session, hotfn_error *err);

#endif
