/* SPDX-License-Identifier: MIT */
/* Session: the stations joined.  Count every function of this process from now on; give me what was
 * counted; stop and put the bytes back.  Also the two ends of `hotfn run`: the parent hands plans
 * over, the target joins. */
#ifndef HOTFN_SESSION_H
#define HOTFN_SESSION_H

#include <hotfn/exporters.h>
#include <hotfn/scan.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hotfn_session hotfn_session;

#define HOTFN_SESSION_NO_FOLLOW_DLOPEN 1u /* do not hook modules that are loaded later             */
#define HOTFN_SESSION_SINGLE_THREADED 2u  /* the caller knows that no other thread runs at start   */
#define HOTFN_SESSION_FLAT 4u             /* TIME: times by function only, no tree, no histograms  */

#define HOTFN_SESSION_COUNT 0u /* mode */
#define HOTFN_SESSION_TIME 1u  /* how long calls take too, and from where (hotfn/timing.h) */

typedef struct hotfn_session_options {
    uint32_t size;  /* sizeof(hotfn_session_options)                                       */
    uint32_t flags; /* HOTFN_SESSION_* [none]                                              */
    const char *const *modules; /* borrowed; globs on module file names [the main program] */
    uint32_t module_count;
    uint32_t slot_capacity;     /* functions that can be counted [2^20; timed 2^17, durable 2^16, 32 bits 2^15] */
    const hotfn_selection *selection; /* borrowed; which functions [all]                   */
    const char *durable_path;   /* keep the record in this file while running [memory]     */
    const hotfn_list *list;     /* kept; hook only what it lists [all]                     */
    const char *map_path;       /* borrowed; a linker map gives the main program's names [none] */
    const char *cache_folder;   /* borrowed; scans are kept there for the next start, as hotfn run
                                   keeps them in ~/.cache/hotfn [none]                      */
    uint32_t mode;        /* HOTFN_SESSION_COUNT, HOTFN_SESSION_TIME [count]                */
    uint32_t sample_mean; /* TIME: one call in so many is timed, at random; all are counted [every call, in full] */
    uint64_t slow_ns;     /* TIME: calls that take longer are kept one by one [none]        */
} hotfn_session_options;
#define HOTFN_SESSION_OPTIONS_INIT { (uint32_t)sizeof(hotfn_session_options), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

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
HOTFN_API hotfn_status hotfn_session_create(hotfn_session **out, const hotfn_session_options *options,
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
HOTFN_API hotfn_status hotfn_session_save(hotfn_session *session, const char *path, hotfn_error *err);
/* Unhook: every byte is put back.  Timed calls that are open end here; their threads return through stubs, whenever they
 * do.  May be started again; the counts go on.  HOTFN_OK, HOTFN_E_STATE (it does not run).  Else it has stopped, but
 * hooks may stand that count nowhere: HOTFN_E_STATE (a thread could not be stopped), HOTFN_E_NO_MEMORY, HOTFN_E_DENIED,
 * HOTFN_E_MISMATCH, as hotfn_hooks_remove.  Since 0.1. */
HOTFN_API hotfn_status hotfn_session_stop(hotfn_session *session, hotfn_error *err);
/* Stop if running, then free.  NULL is fine.  Stubs and the rows of threads that counted stay mapped, emptied, for
 * one may stand there: slot_capacity words of addresses each, and no memory.  Since 0.1. */
HOTFN_API void hotfn_session_destroy(hotfn_session *session);
/* The hook set (a view), for unwinders and stub names.  Since 0.1. */
HOTFN_API const hotfn_hooks *hotfn_session_hooks(const hotfn_session *session);

/* ---- The target's end: join the live record and the plans of a parent. */

typedef struct hotfn_join_options {
    uint32_t size;  /* sizeof(hotfn_join_options)                        */
    uint32_t flags; /* HOTFN_SESSION_* [none]                            */
    const char *live_path;     /* e.g. /proc/PID/fd/N of the live record */
    const char *handover_path; /* and of the handover                    */
    const char *perf_map_path; /* write names of stubs there [no]        */
} hotfn_join_options;
#define HOTFN_JOIN_OPTIONS_INIT { (uint32_t)sizeof(hotfn_join_options), 0, 0, 0, 0 }

/* Hook every module of this process that the handover has a plan for, and from now on those that are
 * loaded later, asking the parent for their plans.  Follows fork().  The caller owns the session; options are
 * copied.  A perf map that cannot be written is a warning.
 *
 * HOTFN_OK, HOTFN_E_OPTION (a path is missing; HOTFN_SESSION_FLAT: the parent chooses what is kept), HOTFN_E_STATE
 * (this process has a session), HOTFN_E_IO (a path cannot be opened or mapped), HOTFN_E_FORMAT, HOTFN_E_MISMATCH
 * (another version's), HOTFN_E_NO_MEMORY, and those of hotfn_session_start.  Since 0.1. */
HOTFN_API hotfn_status hotfn_session_join(hotfn_session **out, const hotfn_join_options *options,
                                          const hotfn_env *env, hotfn_error *err);

/* ---- The parent's end. */

typedef struct hotfn_handover hotfn_handover;

#define HOTFN_REQUEST_NONE 0   /* nothing asked within the time       */
#define HOTFN_REQUEST_MODULE 1 /* a module came that nobody planned   */
#define HOTFN_REQUEST_MAIN 2   /* the same, and it is the program itself */

/* What the target asks. */
typedef struct hotfn_request {
    uint32_t size; /* sizeof(hotfn_request) */
    uint32_t kind; /* HOTFN_REQUEST_*       */
    uint64_t load_base;
    uint64_t file_device;
    uint64_t file_inode;
    char path[1024];
    uint64_t file_stamp; /* another one: another file has the inode now */
} hotfn_request;
#define HOTFN_REQUEST_INIT { (uint32_t)sizeof(hotfn_request), 0, 0, 0, 0, "", 0 }

/* Shared memory for plans and questions (a memfd), owned by the caller.  HOTFN_OK, HOTFN_E_NO_MEMORY.  Since 0.1. */
HOTFN_API hotfn_status hotfn_handover_create(hotfn_handover **out, const hotfn_env *env, hotfn_error *err);
/* NULL is fine.  Since 0.1. */
HOTFN_API void hotfn_handover_destroy(hotfn_handover *handover);
/* The memfd, for the child to inherit; it stays the handover's.  Since 0.1. */
HOTFN_API int32_t hotfn_handover_fd(const hotfn_handover *handover);
/* Put in the plan (copied) of the live record's module number `module`.  HOTFN_OK, HOTFN_E_LIMIT (module above 1023,
 * plans beyond 4 GiB together), HOTFN_E_NO_MEMORY.  Since 0.1. */
HOTFN_API hotfn_status hotfn_handover_add_plan(hotfn_handover *handover, uint32_t module,
                                               const void *plan, uint64_t plan_bytes, hotfn_error *err);
/* Wait at most timeout_ns for the target to ask, or for a ring; fill *out.  HOTFN_OK, also when nobody asked
 * (HOTFN_REQUEST_NONE; a signal may end it early); a question comes again until it is answered.  HOTFN_E_OPTION.
 * One thread at a time.  Since 0.1. */
HOTFN_API hotfn_status hotfn_handover_wait(hotfn_handover *handover, uint64_t timeout_ns, hotfn_request *out);
/* The hotfn_handover_wait of another thread, or its next one, ends now.  Since 0.1. */
HOTFN_API void hotfn_handover_ring(hotfn_handover *handover);
/* Answer the question: the module is now in the live record (and its plan in the handover, if any); UINT32_MAX: leave
 * it alone.  HOTFN_OK, HOTFN_E_STATE (nobody asked, or who did is gone and another asks).  Since 0.1. */
HOTFN_API hotfn_status hotfn_handover_answer(hotfn_handover *handover, uint32_t module);
/* What the target did, once it has started.  HOTFN_OK, HOTFN_E_STATE (before that), HOTFN_E_OPTION.  Since 0.1. */
HOTFN_API hotfn_status hotfn_handover_get_stats(const hotfn_handover *handover, hotfn_commit_stats *out);

/* ---- A budget: the parent sees to it that hooks take no more than their share of the target's time.
 * It looks at the live counts from time to time, and takes functions that cost too much out of the
 * running target; nothing of it runs there.  What it does stands in the record (hotfn/budget.h). */

typedef struct hotfn_budget hotfn_budget;

/* live was made with a budget_ppm; it and handover are kept.  Measures what a hook costs here (a
 * millisecond).  HOTFN_E_OPTION, HOTFN_E_NO_MEMORY, HOTFN_E_UNSUPPORTED (this CPU).  Since 0.1. */
HOTFN_API hotfn_status hotfn_budget_create(hotfn_budget **out, hotfn_live *live, hotfn_handover *handover,
                                           const hotfn_env *env, hotfn_error *err);
/* Look once, and change what must be changed, in the process pid, which the caller has not yet reaped.
 * All steps come from one thread.  The target may be stopped by ptrace meanwhile: others in this process
 * that wait for it see that (waitid with WNOWAIT leaves it for us).  Returns after how many nanoseconds
 * the next step is due.  Since 0.1. */
HOTFN_API uint64_t hotfn_budget_step(hotfn_budget *budget, uint32_t pid);
/* Let go of the target.  What is out of it stays out.  NULL is fine.  Since 0.1. */
HOTFN_API void hotfn_budget_destroy(hotfn_budget *budget);

#ifdef __cplusplus
}
#endif

#endif
