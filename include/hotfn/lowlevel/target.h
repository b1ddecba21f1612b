/* SPDX-License-Identifier: MIT */
/* The two ends of a run: the launcher serves plans, the target joins and asks for them. */
#ifndef HOTFN_LOWLEVEL_TARGET_H
#define HOTFN_LOWLEVEL_TARGET_H

#include <hotfn/lowlevel/live.h>
#include <hotfn/lowlevel/scan.h>
#include <hotfn/session.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- The target's end: join the live record and the plans of a parent. */

typedef struct hotfn_join_options {
    uint32_t size;             /* sizeof(hotfn_join_options)                        */
    uint32_t flags;            /* HOTFN_SESSION_* [none]                            */
    const char *live_path;     /* e.g. /proc/PID/fd/N of the live record */
    const char *handover_path; /* and of the handover                    */
    const char *perf_map_path; /* write names of stubs there [no]        */
} hotfn_join_options;
#define HOTFN_JOIN_OPTIONS_INIT                                                                    \
    {                                                                                              \
        (uint32_t)sizeof(hotfn_join_options), 0, 0, 0, 0                                           \
    }

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
#define HOTFN_REQUEST_INIT                                                                         \
    {                                                                                              \
        (uint32_t)sizeof(hotfn_request), 0, 0, 0, 0, "", 0                                         \
    }

/* Shared memory for plans and questions (a memfd), owned by the caller.  HOTFN_OK, HOTFN_E_NO_MEMORY.  Since 0.1. */
HOTFN_API hotfn_status hotfn_handover_create(hotfn_handover **out, const hotfn_env *env,
                                             hotfn_error *err);
/* NULL is fine.  Since 0.1. */
HOTFN_API void hotfn_handover_destroy(hotfn_handover *handover);
/* The memfd, for the child to inherit; it stays the handover's.  Since 0.1. */
HOTFN_API int32_t hotfn_handover_fd(const hotfn_handover *handover);
/* Put in the plan (copied) of the live record's module number `module`.  HOTFN_OK, HOTFN_E_LIMIT (module above 1023,
 * plans beyond 4 GiB together), HOTFN_E_NO_MEMORY.  Since 0.1. */
HOTFN_API hotfn_status hotfn_handover_add_plan(hotfn_handover *handover, uint32_t module,
                                               const void *plan, uint64_t plan_bytes,
                                               hotfn_error *err);
/* Wait at most timeout_ns for the target to ask, or for a ring; fill *out.  HOTFN_OK, also when nobody asked
 * (HOTFN_REQUEST_NONE; a signal may end it early); a question comes again until it is answered.  HOTFN_E_OPTION.
 * One thread at a time.  Since 0.1. */
HOTFN_API hotfn_status hotfn_handover_wait(hotfn_handover *handover, uint64_t timeout_ns,
                                           hotfn_request *out);
/* The hotfn_handover_wait of another thread, or its next one, ends now.  Since 0.1. */
HOTFN_API void hotfn_handover_ring(hotfn_handover *handover);
/* Answer the question: the module is now in the live record (and its plan in the handover, if any); UINT32_MAX: leave
 * it alone.  HOTFN_OK, HOTFN_E_STATE (nobody asked, or who did is gone and another asks).  Since 0.1. */
HOTFN_API hotfn_status hotfn_handover_answer(hotfn_handover *handover, uint32_t module);
/* What the target did, once it has started.  HOTFN_OK, HOTFN_E_STATE (before that), HOTFN_E_OPTION.  Since 0.1. */
HOTFN_API hotfn_status hotfn_handover_get_stats(const hotfn_handover *handover,
                                                hotfn_commit_stats *out);

/* ---- A budget: the parent sees to it that hooks take no more than their share of the target's time.
 * It looks at the live counts from time to time, and takes functions that cost too much out of the
 * running target; nothing of it runs there.  What it does stands in the record (hotfn/budget.h). */

typedef struct hotfn_budget hotfn_budget;

/* live was made with a budget_ppm; it and handover are kept.  Measures what a hook costs here (a
 * millisecond).  HOTFN_E_OPTION, HOTFN_E_NO_MEMORY, HOTFN_E_UNSUPPORTED (this CPU).  Since 0.1. */
HOTFN_API hotfn_status hotfn_budget_create(hotfn_budget **out, hotfn_live *live,
                                           hotfn_handover *handover, const hotfn_env *env,
                                           hotfn_error *err);
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
