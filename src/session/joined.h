/* SPDX-License-Identifier: MIT */
/* The target's end of a launch: a session over the launcher's live record and plans. */
#ifndef HFN_SESSION_JOINED_H
#define HFN_SESSION_JOINED_H

#include "live/plan_channel.h"
#include "session/runtime.h"

#include <hotfn/session.h>

/*
 * After exec has replaced the target by this program: request a record for it from the launcher.
 * channel_path is the path of the previous program's plan channel.  HOTFN_OK, HOTFN_E_IO,
 * HOTFN_E_FORMAT, HOTFN_E_MISMATCH as hfn_session_join; HOTFN_E_STATE (the launcher has ended, or
 * could not create a record).
 */
hotfn_status hfn_session_request_image(const char *channel_path, hfn_run_files *out,
                                       hotfn_error *err);

/* Report to the launcher that process pid calls exec for the file at path, or that this exec
 * failed; is_own: it is the target itself, otherwise a child of it.  Returns the number of the
 * report, UINT32_MAX if there is no launcher. Async-signal-safe; also after vfork. */
uint32_t hfn_session_report_exec(uint32_t pid, const char *path, bool is_own);
void hfn_session_report_exec_failed(uint32_t number);

typedef struct hfn_join_options {
    uint32_t flags;             /* HOTFN_SESSION_*, without FLAT                           */
    const char *live_path;      /* of the live record, for example /proc/PID/fd/N          */
    const char *channel_path;   /* of the plan channel                                     */
    const char *perf_map_path;  /* file for the names of stubs [none]                      */
    const hfn_runtime *runtime; /* kept; tracer of methods [none]                          */
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

/*
 * End a joined session whose process runs on: restore its code, and release what the session has
 * mapped, except the stubs and the rows that threads may still use.
 *
 * HOTFN_OK: *session is destroyed and NULL; err has a warning, or an empty text.  Otherwise the
 * session counts on: HOTFN_E_STATE (a thread could not be stopped), HOTFN_E_NO_MEMORY.
 */
hotfn_status hfn_session_leave(hotfn_session **session, hotfn_error *err);

/* framed.c: true if the function at the address was proven to access nothing of its caller's stack
 * but max_words words of arguments, and may therefore be called from another frame.  False also in
 * a session without times.  Any thread, also in a signal handler. */
bool hfn_session_may_frame(uint64_t address, uint32_t max_words);

#endif
