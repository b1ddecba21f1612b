/* SPDX-License-Identifier: MIT */
/* The target's end of a launch: a session over the launcher's live record and plans. */
#ifndef HFN_SESSION_JOINED_H
#define HFN_SESSION_JOINED_H

#include <hotfn/session.h>

typedef struct hfn_join_options {
    uint32_t flags;            /* HOTFN_SESSION_*, without FLAT                           */
    const char *live_path;     /* of the live record, for example /proc/PID/fd/N          */
    const char *channel_path;  /* of the plan channel                                     */
    const char *perf_map_path; /* file for the names of stubs [none]                      */
} hfn_join_options;

/*
 * Create a session and start it: hook each module of this process that has a plan, and each module
 * that is loaded later, whose plan is requested from the launcher.  Follows fork().  A perf map
 * that cannot be written is a warning.
 *
 * out      receives a session that the caller owns; untouched on failure.
 * options  borrowed.
 *
 * HOTFN_OK, HOTFN_E_OPTION (an unknown flag, or no path), HOTFN_E_STATE (the process has a
 * session), HOTFN_E_IO (a path cannot be opened or mapped), HOTFN_E_FORMAT, HOTFN_E_MISMATCH
 * (another version), HOTFN_E_NO_MEMORY, and the failures of hotfn_session_start.
 */
hotfn_status hfn_session_join(hotfn_session **out, const hfn_join_options *options,
                              const hotfn_env *env, hotfn_error *err);

#endif
