/* SPDX-License-Identifier: MIT */
/* Session: count the calls of this process.  A session hooks the selected modules, hands out what
 * was counted so far as a record, and puts the original bytes back when it stops. */
#ifndef HOTFN_SESSION_H
#define HOTFN_SESSION_H

#include <hotfn/record.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hotfn_session hotfn_session;

/* flags */
#define HOTFN_SESSION_NO_FOLLOW_DLOPEN 1u /* do not hook modules that are loaded later       */
#define HOTFN_SESSION_SINGLE_THREADED 2u  /* no other thread runs while the session starts   */
#define HOTFN_SESSION_FLAT 4u /* TIME: keep times per function only: no call tree, no histograms */
/* TIME: while the session runs, threads of libhotfn keep a tick clock, which costs less than
 * reading the counter at both ends of each call.  If none can be started, the counter is read; the
 * record says which. */
#define HOTFN_SESSION_TICKER 8u
/* hotfn_session_create does not wait until the files of the loaded modules are read and scanned: a
 * thread of libhotfn does that, and hotfn_session_start waits for it. */
#define HOTFN_SESSION_BACKGROUND 16u

/* mode */
#define HOTFN_SESSION_COUNT 0u
#define HOTFN_SESSION_TIME 1u /* also measure how long calls take and who makes them; unstable */

typedef struct hotfn_session_options {
    uint32_t size;              /* sizeof(hotfn_session_options)                          */
    uint32_t flags;             /* HOTFN_SESSION_* [none]                                 */
    const char *const *modules; /* borrowed; globs on module file names [the main program] */
    uint32_t module_count;
    uint32_t slot_capacity; /* functions that can be counted [2^20; if timed 2^17, durable and
                               timed 2^16, timed on a 32-bit system 2^15]                     */
    const hotfn_selection *selection; /* borrowed; functions to hook [all]                */
    const char *durable_path;         /* borrowed; file that keeps the record while the session
                                   runs [memory only]                                         */
    const hotfn_list *list;   /* kept; hook only the functions that it lists [all]          */
    const char *map_path;     /* borrowed; linker map with the main program's names [none]  */
    const char *cache_folder; /* borrowed; folder where scans are kept for the next start
                                   [none]                                                     */
    uint32_t mode;            /* HOTFN_SESSION_COUNT or HOTFN_SESSION_TIME [COUNT]          */
    uint32_t sample_mean;     /* TIME: mean sampling interval in calls; every call is
                                   counted [every call is timed]                              */
    uint64_t slow_ns;         /* TIME: keep each call that takes longer [none]              */
} hotfn_session_options;
#define HOTFN_SESSION_OPTIONS_INIT                                                                 \
    {                                                                                              \
        (uint32_t)sizeof(hotfn_session_options), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0                \
    }

/* What the latest start and stop did. */
typedef struct hotfn_session_stats {
    uint32_t size;            /* sizeof(hotfn_session_stats)                                     */
    uint32_t hooked;          /* functions hooked since the start, without those that hotfn hooks
                                 for itself (the dynamic linker's report of loaded modules) */
    uint32_t refused;         /* functions that could not be hooked; the record has the reasons  */
    uint32_t remaining;       /* hooks that the stop could not remove; they no longer count */
    int32_t remaining_status; /* why bytes remain changed: HOTFN_E_STATE (a thread could not
                                 be stopped), HOTFN_E_NO_MEMORY, HOTFN_E_DENIED (the code
                                 cannot be written any more), HOTFN_E_MISMATCH (another
                                 program part changed it); HOTFN_OK: all bytes are restored */
    uint32_t reserved;
    uint64_t stub_bytes; /* generated code                              */
    uint64_t unwind_bytes;
    uint64_t table_bytes;       /* memory of the hook set itself        */
    uint64_t copied_page_bytes; /* pages of code that became private    */
    uint64_t total_ns;          /* time taken to hook                   */
} hotfn_session_stats;
#define HOTFN_SESSION_STATS_INIT                                                                   \
    {                                                                                              \
        (uint32_t)sizeof(hotfn_session_stats), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0                        \
    }

/*
 * Create a session: create the record, and read and scan the selected modules that are loaded, and
 * the dynamic linker, which reports later ones.  Nothing is hooked yet.  A process has one session
 * at a time.  libhotfn itself is never hooked, so a module that contains libhotfn.a cannot be
 * selected.
 *
 * With HOTFN_SESSION_TIME a timed call returns through a frame of hotfn.  Exceptions pass it with
 * the help of libgcc_s, which is loaded; libhotfn then stays in the process for good.  A function
 * whose calls end at a jump is only counted, because that jump could not be restored.
 *
 * out      receives a session that the caller owns; untouched on failure.
 * options  NULL means all defaults.
 * env      copied; NULL means all defaults.
 *
 * HOTFN_OK; HOTFN_E_STATE (the process has a session, or `hotfn run` hooks it already);
 * HOTFN_E_OPTION (a malformed glob, or an option for times without HOTFN_SESSION_TIME);
 * HOTFN_E_UNSUPPORTED (libhotfn.a is in a selected module; times: this CPU, libhotfn.a in the main
 * program, a module linked with -static-libgcc, a process that may not read its clock);
 * HOTFN_E_NO_MEMORY; HOTFN_E_IO (the durable file or the map); HOTFN_E_FORMAT and HOTFN_E_MISMATCH
 * (the map); HOTFN_E_LIMIT (slot_capacity).  Any thread, one at a time.  Since 0.1.
 */
HOTFN_API hotfn_status hotfn_session_create(hotfn_session **out,
                                            const hotfn_session_options *options,
                                            const hotfn_env *env, hotfn_error *err);
/*
 * Hook.  No file is read, except of modules that were loaded since the session was created.
 * Functions that cannot be hooked are in the record with their reasons.  A session that was
 * stopped may be started again and adds to the same counts.
 *
 * HOTFN_OK, HOTFN_E_STATE (the session runs, other counters exist, or a thread still executes the
 * stub of a timed call of an earlier session), HOTFN_E_NO_MEMORY, HOTFN_E_DENIED (no code could be
 * written), HOTFN_E_UNSUPPORTED (stubs cannot reach thread-local storage).  One thread at a time.
 * Since 0.1.
 */
HOTFN_API hotfn_status hotfn_session_start(hotfn_session *session, hotfn_error *err);
/*
 * Unhook: put the original bytes back and end the timed calls that are open; their threads return
 * through stubs, which stay mapped.  After HOTFN_OK the session is stopped, also when hooks remain:
 * hotfn_session_get_stats reports how many and why, and a warning is logged.
 *
 * HOTFN_OK, HOTFN_E_STATE (the session does not run).  One thread at a time.  Since 0.1.
 */
HOTFN_API hotfn_status hotfn_session_stop(hotfn_session *session, hotfn_error *err);
/* Get what the latest start and stop did.  HOTFN_OK, HOTFN_E_OPTION.  One thread at a time.  Since
 * 0.1. */
HOTFN_API hotfn_status hotfn_session_get_stats(const hotfn_session *session,
                                               hotfn_session_stats *out);
/*
 * Copy what was counted so far into a record, while the session runs or after it was stopped.
 *
 * out  receives a record that the caller owns; untouched on failure.
 *
 * HOTFN_OK, HOTFN_E_NO_MEMORY, HOTFN_E_FORMAT (the record's memory was overwritten), HOTFN_E_IO
 * (/proc is not mounted).  Any thread.  Since 0.1.
 */
HOTFN_API hotfn_status hotfn_session_snapshot(hotfn_record **out, const hotfn_session *session,
                                              hotfn_error *err);
/*
 * Write what was counted so far to path as a finished record; the session continues.
 *
 * HOTFN_OK, HOTFN_E_IO (err names the file), HOTFN_E_NO_MEMORY, HOTFN_E_FORMAT (the record's memory
 * was overwritten).  One thread at a time.  Since 0.1.
 */
HOTFN_API hotfn_status hotfn_session_save(hotfn_session *session, const char *path,
                                          hotfn_error *err);
/* Stop the session if it runs, then free it.  Stubs and used rows stay mapped, because a thread may
 * still run a stub.  NULL is fine.  One thread at a time.  Since 0.1. */
HOTFN_API void hotfn_session_destroy(hotfn_session *session);

#ifdef __cplusplus
}
#endif

#endif
