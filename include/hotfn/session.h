/* SPDX-License-Identifier: MIT */
/* Session: count the calls of this process.  A session hooks the functions of the selected modules,
 * returns the counts so far as a record, and restores the original code when it stops. */
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
/* TIME: while the session runs, threads of libhotfn advance a tick clock, which costs less than
 * reading the processor's counter at the entry and the exit of each call.  If no such thread can be
 * started, the counter is read.  The record has the clock that was used. */
#define HOTFN_SESSION_TICKER 8u
/* A thread of libhotfn reads and scans the files of the loaded modules.  hotfn_session_create does
 * not wait for this thread; hotfn_session_start does. */
#define HOTFN_SESSION_BACKGROUND 16u
/* Make room for the zones and messages of <hotfn/zone.h>: up to 1024 different names. */
#define HOTFN_SESSION_ZONES 32u

/* mode */
#define HOTFN_SESSION_COUNT 0u
#define HOTFN_SESSION_TIME 1u /* also measure how long calls take and who makes them; unstable */

/* A group of functions that can be switched on and off together. */
typedef struct hotfn_group {
    uint32_t size;                    /* sizeof(hotfn_group)                             */
    uint32_t flags;                   /* HOTFN_GROUP_* [none]                            */
    const char *name;                 /* borrowed; must differ from those of the others  */
    const hotfn_selection *selection; /* borrowed; functions of the group, among those
                                         that the session hooks [all]                    */
} hotfn_group;
#define HOTFN_GROUP_OFF 1u /* off when the session is created */
#define HOTFN_GROUP_INIT                                                                           \
    {                                                                                              \
        (uint32_t)sizeof(hotfn_group), 0, 0, 0                                                     \
    }
#define HOTFN_MAX_GROUPS 64u

typedef struct hotfn_session_options {
    uint32_t size;              /* sizeof(hotfn_session_options)                          */
    uint32_t flags;             /* HOTFN_SESSION_* [none]                                 */
    const char *const *modules; /* borrowed; globs on module file names [the main program] */
    uint32_t module_count;
    uint32_t slot_capacity; /* functions that can be counted [2^20; if timed 2^17, durable and
                               timed 2^16, timed on a 32-bit system 2^15]                     */
    const hotfn_selection *selection; /* borrowed; functions to hook [all]                */
    const char *durable_path;         /* borrowed; file that holds the record while the session
                                   runs [the record is in memory]                             */
    const hotfn_list *list;    /* kept; hook only the functions in this list [all]           */
    const char *map_path;      /* borrowed; linker map with the main program's names [none]  */
    const char *cache_folder;  /* borrowed; folder where scans are kept for the next start
                                   [none]                                                     */
    uint32_t mode;             /* HOTFN_SESSION_COUNT or HOTFN_SESSION_TIME [COUNT]          */
    uint32_t sample_mean;      /* TIME: time one in so many calls on average; every call is still
                                   counted [every call is timed]                              */
    uint64_t slow_ns;          /* TIME: keep a list of the calls that take longer [none]     */
    const hotfn_group *groups; /* borrowed [none]                                           */
    uint32_t group_count;      /* at most HOTFN_MAX_GROUPS                                  */
    uint32_t reserved;         /* 0                                                         */
} hotfn_session_options;
#define HOTFN_SESSION_OPTIONS_INIT                                                                 \
    {                                                                                              \
        (uint32_t)sizeof(hotfn_session_options), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0       \
    }

/* What the latest start and stop did. */
typedef struct hotfn_session_stats {
    uint32_t size;            /* sizeof(hotfn_session_stats)                                     */
    uint32_t hooked;          /* functions hooked since the start, without those that are
                                 switched off now, and without the function of the dynamic
                                 linker by which hotfn notices new modules */
    uint32_t refused;         /* functions that could not be hooked; the record has the reasons  */
    uint32_t remaining;       /* hooks that the stop could not remove; they no longer count calls */
    int32_t remaining_status; /* why bytes remain changed: HOTFN_E_STATE (a thread could not
                                 be stopped), HOTFN_E_NO_MEMORY, HOTFN_E_DENIED (the code
                                 cannot be written any more), HOTFN_E_MISMATCH (another
                                 program part changed it); HOTFN_OK: all bytes are restored */
    uint32_t reserved;
    uint64_t stub_bytes; /* generated code                              */
    uint64_t unwind_bytes;
    uint64_t table_bytes;       /* memory of the hook set itself        */
    uint64_t copied_page_bytes; /* pages of code that became private by patching */
    uint64_t total_ns;          /* how long hooking took                */
} hotfn_session_stats;
#define HOTFN_SESSION_STATS_INIT                                                                   \
    {                                                                                              \
        (uint32_t)sizeof(hotfn_session_stats), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0                        \
    }

/*
 * Create a session and its record.  This reads and scans the selected modules that are loaded, and
 * the dynamic linker, through which the session notices modules that are loaded later.  Nothing is
 * hooked yet.  A process can have one session at a time.  libhotfn itself is never hooked, so a
 * module that contains libhotfn.a cannot be selected.
 *
 * With HOTFN_SESSION_TIME, a timed call returns through a stack frame of hotfn.  Therefore this
 * call loads libgcc_s, which unwinds exceptions through the frame, and keeps libhotfn loaded until
 * the process ends.  A function that ends by a jump to another function (a tail exit) is only
 * counted, because that jump could not be restored.
 *
 * out      receives a session that the caller owns; untouched on failure.
 * options  NULL means all defaults.
 * env      copied; NULL means all defaults.
 *
 * HOTFN_OK; HOTFN_E_STATE (the process has a session, or `hotfn run` hooks it already);
 * HOTFN_E_OPTION (a malformed glob, a group without a name, or an option for times without
 * HOTFN_SESSION_TIME);
 * HOTFN_E_UNSUPPORTED (libhotfn.a is in a selected module; for times: this CPU, libhotfn.a in the
 * main program, a module linked with -static-libgcc, or a process that may not read the processor's
 * counter); HOTFN_E_NO_MEMORY; HOTFN_E_IO (the durable file or the map); HOTFN_E_FORMAT and
 * HOTFN_E_MISMATCH (the map); HOTFN_E_LIMIT (slot_capacity).  Any thread, one at a time.
 * Since 0.1.
 */
HOTFN_API hotfn_status hotfn_session_create(hotfn_session **out,
                                            const hotfn_session_options *options,
                                            const hotfn_env *env, hotfn_error *err);
/*
 * Hook the selected functions.  This reads only files of modules that were loaded since the session
 * was created.  The record lists functions that cannot be hooked, with the reasons.  A session that
 * was stopped may be started again, and then adds to the same counts.
 *
 * HOTFN_OK, HOTFN_E_STATE (the session runs, other counters exist, or a thread still executes the
 * stub of a timed call of an earlier session), HOTFN_E_NO_MEMORY, HOTFN_E_DENIED (no code could be
 * written), HOTFN_E_UNSUPPORTED (stubs cannot reach thread-local storage).  One thread at a time.
 * Since 0.1.
 */
HOTFN_API hotfn_status hotfn_session_start(hotfn_session *session, hotfn_error *err);
/*
 * Unhook: restore the original code, and end the timing of calls that are open.  These calls return
 * through stubs, which therefore stay mapped.  After HOTFN_OK the session is stopped, even if hooks
 * remain: hotfn_session_get_stats reports how many and why, and a warning is logged.
 *
 * HOTFN_OK, HOTFN_E_STATE (the session does not run).  One thread at a time.  Since 0.1.
 */
HOTFN_API hotfn_status hotfn_session_stop(hotfn_session *session, hotfn_error *err);
/*
 * Switch a group on or off, while the session runs or while it is stopped.  A function that is in
 * groups is hooked if one of them is on; a function in no group is always hooked.  The code of
 * functions that are off has its original bytes, and their counts and times stay as they are.
 *
 * name   of the group.
 * is_on  0: off.
 *
 * HOTFN_OK; HOTFN_E_NOT_FOUND (no such group); HOTFN_E_STATE (a thread could not be stopped:
 * nothing was changed); HOTFN_E_DENIED (code cannot be written any more) and HOTFN_E_MISMATCH
 * (another program part changed it): the other functions were switched; HOTFN_E_NO_MEMORY.  One
 * thread at a time.  Since 0.1.
 */
HOTFN_API hotfn_status hotfn_session_switch_group(hotfn_session *session, const char *name,
                                                  uint32_t is_on, hotfn_error *err);
/* Get what the latest start and stop did.  HOTFN_OK, HOTFN_E_OPTION.  One thread at a time.  Since
 * 0.1. */
HOTFN_API hotfn_status hotfn_session_get_stats(const hotfn_session *session,
                                               hotfn_session_stats *out);
/*
 * Copy the counts so far into a record, while the session runs or after it was stopped.
 *
 * out  receives a record that the caller owns; untouched on failure.
 *
 * HOTFN_OK, HOTFN_E_NO_MEMORY, HOTFN_E_FORMAT (the record's memory was overwritten), HOTFN_E_IO
 * (/proc is not mounted).  Any thread.  Since 0.1.
 */
HOTFN_API hotfn_status hotfn_session_snapshot(hotfn_record **out, const hotfn_session *session,
                                              hotfn_error *err);
/*
 * Write the counts so far to path as a finished record.  The session continues.
 *
 * HOTFN_OK, HOTFN_E_IO (err names the file), HOTFN_E_NO_MEMORY, HOTFN_E_FORMAT (the record's memory
 * was overwritten).  One thread at a time.  Since 0.1.
 */
HOTFN_API hotfn_status hotfn_session_save(hotfn_session *session, const char *path,
                                          hotfn_error *err);
/* Stop the session if it runs, then free it.  Stubs and the rows of counters that were used stay
 * mapped, because a thread may still execute a stub.  NULL is fine.  One thread at a time.  Since
 * 0.1. */
HOTFN_API void hotfn_session_destroy(hotfn_session *session);

#ifdef __cplusplus
}
#endif

#endif
