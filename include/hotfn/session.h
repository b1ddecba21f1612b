/* SPDX-License-Identifier: MIT */
/* Session: the stations joined.  Count every function of this process from now on; give me what was
 * counted; stop and put the bytes back.  */
#ifndef HOTFN_SESSION_H
#define HOTFN_SESSION_H

#include <hotfn/lowlevel/hooks.h>
#include <hotfn/lowlevel/lists.h>
#include <hotfn/record.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hotfn_session hotfn_session;

#define HOTFN_SESSION_NO_FOLLOW_DLOPEN                                                             \
    1u                                   /* do not hook modules that are loaded later             */
#define HOTFN_SESSION_SINGLE_THREADED 2u /* the caller knows that no other thread runs at start   */
#define HOTFN_SESSION_FLAT 4u            /* TIME: times by function only, no tree, no histograms  */

#define HOTFN_SESSION_COUNT 0u /* mode */
#define HOTFN_SESSION_TIME 1u  /* how long calls take too, and from where (hotfn/timing.h) */

typedef struct hotfn_session_options {
    uint32_t size;  /* sizeof(hotfn_session_options)                                       */
    uint32_t flags; /* HOTFN_SESSION_* [none]                                              */
    const char *const *modules; /* borrowed; globs on module file names [the main program] */
    uint32_t module_count;
    uint32_t
        slot_capacity; /* functions that can be counted [2^20; timed 2^17, durable 2^16, 32 bits 2^15] */
    const hotfn_selection *selection; /* borrowed; which functions [all]                   */
    const char *durable_path;         /* keep the record in this file while running [memory]     */
    const hotfn_list *list;           /* kept; hook only what it lists [all]                     */
    const char *map_path;     /* borrowed; a linker map gives the main program's names [none] */
    const char *cache_folder; /* borrowed; scans are kept there for the next start, as hotfn run
                                   keeps them in ~/.cache/hotfn [none]                      */
    uint32_t mode;            /* HOTFN_SESSION_COUNT, HOTFN_SESSION_TIME [count]                */
    uint32_t
        sample_mean; /* TIME: one call in so many is timed, at random; all are counted [every call, in full] */
    uint64_t slow_ns; /* TIME: calls that take longer are kept one by one [none]        */
} hotfn_session_options;
#define HOTFN_SESSION_OPTIONS_INIT                                                                 \
    {                                                                                              \
        (uint32_t)sizeof(hotfn_session_options), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0                \
    }

/*
 * Scan the selected modules of the running process and prepare to count.  Nothing is hooked yet.
 * One session a process at a time (HOTFN_E_STATE).  libhotfn itself is never hooked: a module that has
 * libhotfn.a in it cannot be chosen (HOTFN_E_UNSUPPORTED).  With a map also the errors of
 * hotfn_symbols_load_map.
 *
 * With HOTFN_SESSION_TIME a timed function runs behind a frame of ours, which exceptions pass: libgcc_s is
 * loaded, and libhotfn stays in the process for good.  A function whose call would have to end at a jump is counted
 * only, since that jump could not be put back.  HOTFN_E_UNSUPPORTED: no timing on this CPU, libhotfn.a in the main
 * program, a module with an unwinder of its own (-static-libgcc), a process that may not read its clock.
 * HOTFN_E_STATE: `hotfn run` hooks this process already.
 *
 * HOTFN_OK, HOTFN_E_OPTION (a broken glob, times asked for without the mode), HOTFN_E_NO_MEMORY, and those of
 * hotfn_live_create.  Since 0.1.
 */
HOTFN_API hotfn_status hotfn_session_create(hotfn_session **out,
                                            const hotfn_session_options *options,
                                            const hotfn_env *env, hotfn_error *err);
/* Hook.  Functions that cannot be hooked are in the record with their reasons.  stats count the loader's breakpoint too,
 * by which later modules are seen: of modules that are not there yet, one function is hooked.
 *
 * HOTFN_OK, HOTFN_E_STATE (it runs; other counters are active; a thread still stands in a timed hook of an earlier
 * session), HOTFN_E_NO_MEMORY, HOTFN_E_DENIED (no code could be written), HOTFN_E_UNSUPPORTED (as
 * hotfn_counters_create), HOTFN_E_OPTION (stats->size).  Since 0.1. */
HOTFN_API hotfn_status hotfn_session_start(hotfn_session *session, hotfn_commit_stats *stats,
                                           hotfn_error *err);
/* What was counted until now, as a record that the caller closes; any thread, while running or after
 * stop.  HOTFN_OK, HOTFN_E_NO_MEMORY, HOTFN_E_FORMAT (overwritten memory), HOTFN_E_IO (no /proc; a session that
 * joined: its parent has the record).  Since 0.1. */
HOTFN_API hotfn_status hotfn_session_snapshot(const hotfn_session *session, hotfn_record **out,
                                              hotfn_error *err);
/* Write what was counted until now to path as a finished record; the session goes on.  HOTFN_OK, HOTFN_E_IO (err
 * names the file), HOTFN_E_NO_MEMORY, HOTFN_E_FORMAT (overwritten memory), HOTFN_E_STATE (a session that joined).
 * Since 0.1. */
HOTFN_API hotfn_status hotfn_session_save(hotfn_session *session, const char *path,
                                          hotfn_error *err);
/* Unhook: every byte is put back.  Timed calls that are open end here; their threads return through stubs, whenever they
 * do.  May be started again; the counts go on.  HOTFN_OK, HOTFN_E_STATE (it does not run).  Else it has stopped, but
 * hooks may stand that count nowhere: HOTFN_E_STATE (a thread could not be stopped), HOTFN_E_NO_MEMORY, HOTFN_E_DENIED,
 * HOTFN_E_MISMATCH, as hotfn_hooks_remove.  Since 0.1. */
HOTFN_API hotfn_status hotfn_session_stop(hotfn_session *session, hotfn_error *err);
/* Stop if running, then free.  NULL is fine.  Stubs and the rows of threads that counted stay mapped, emptied, for
 * one may stand there: slot_capacity words of addresses each, and no memory.  Since 0.1. */
HOTFN_API void hotfn_session_destroy(hotfn_session *session);
/* The hook set (a view), for unwinders and stub names.  Since 0.1. */
HOTFN_API const hotfn_hooks *hotfn_session_get_hooks(const hotfn_session *session);
#ifdef __cplusplus
}
#endif

#endif
