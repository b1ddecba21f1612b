/* SPDX-License-Identifier: MIT */
/* The session object, shared by its two kinds: a session that scans its own process
 * (own_process.c), and a session in the target of a launcher (joined.c), which must not link the
 * scanner. */
#ifndef HFN_SESSION_INTERNAL_H
#define HFN_SESSION_INTERNAL_H

#include "counters/timing/ticker.h"
#include "live/plan_channel.h"
#include "scan/modules.h"
#include "session/process.h"

#define HFN_SESSION_FLAGS (HOTFN_SESSION_NO_FOLLOW_DLOPEN | HOTFN_SESSION_SINGLE_THREADED)

typedef struct hfn_scanned {
    struct hfn_scanned *next;
    hotfn_scan *scan; /* NULL: the file cannot be scanned */
    uint32_t number;  /* in the session's known modules */
    uint32_t live_module;
    const uint64_t *groups; /* bits of the groups of each function; NULL: there are no groups */
} hfn_scanned;

/* A loaded module that was described. */
typedef struct hfn_described {
    struct hfn_described *next;
    const char *name; /* as the dynamic linker has it */
    hfn_plan_request request;
} hfn_described;

typedef struct hfn_group {
    const char *name;
    hotfn_selection selection;
} hfn_group;

typedef struct hfn_mapped_plan {
    struct hfn_mapped_plan *next;
    const void *bytes; /* NULL: no plan */
    uint64_t byte_count;
    uint32_t live_module;
} hfn_mapped_plan;

struct hotfn_session {
    hotfn_env env;
    uint32_t flags;      /* HOTFN_SESSION_* */
    uint32_t hook_flags; /* HOTFN_HOOKS_*   */
    uint64_t off_groups; /* bits of the groups that are off */
    bool running;
    bool is_verified;          /* the patches were checked at the end of the process */
    hotfn_session_stats stats; /* of the latest start and stop */
    hfn_live *live;
    hfn_process process;
    hfn_plan_source source;
    void (*finish_reading)(hotfn_session *session); /* waits; NULL: nothing is read in advance */
    void (*release)(hotfn_session *session);        /* frees the fields of its kind; may be NULL */
    void (*start_clock)(hotfn_session *session);    /* NULL: nothing to start or to stop         */
    void (*stop_clock)(hotfn_session *session);
    hfn_arena texts;
    /* A session that scans its own process: */
    const char *const *modules;
    uint32_t module_count;
    hotfn_selection selection;
    const hotfn_list *list;   /* kept; NULL: all */
    const char *cache_folder; /* NULL: none */
    bool is_timed;
    hfn_os_thread reader;
    bool is_reading;
    hfn_described *described;
    hfn_scanned *scans;
    hfn_known_modules known; /* the modules in `scans` */
    hfn_ticker ticker;
    bool holds_own_code;
    hfn_group *groups; /* the bit of group i is 1 << i */
    uint32_t group_count;
    bool has_zones;
    uint32_t zones;             /* their module in the live record */
    const uint32_t *zone_slots; /* by function of that module      */
    /* A session in the target of a launcher: */
    hfn_plan_client client;
    hfn_mapped_plan *plans;
    const hfn_runtime *runtime; /* kept; NULL: none */
};

/* timing_allowed.c: check that this process can time its own calls, and prepare it. */
hotfn_status hfn_session_prepare_timing(hotfn_session *session, hotfn_error *err);

/* The session of this process; NULL if it has none. */
hotfn_session *hfn_session_current(void);
hotfn_session *hfn_session_new(const hotfn_env *env);
/* Make this the session of the process, and follow fork() from now on. */
hotfn_status hfn_session_claim(hotfn_session *session, hotfn_error *err);
void hfn_session_release(hotfn_session *session);
/* The hooks and the live record of the process's session; NULL if there is no session.  Any thread,
 * also in a signal handler. */
const hotfn_hooks *hfn_session_current_hooks(void);
hfn_live *hfn_session_current_live(void);
/* Called before the process ends or calls exec: check its patches.  False if they could not be
 * checked. */
bool hfn_session_verify(void);
/* The process continues after hfn_session_verify returned true. */
void hfn_session_revoke_verified(void);
/* Before exec: verify, and end the open calls.  After an exec that failed: revoke both;
 * was_verified is the result of the first call. */
bool hfn_session_begin_exec(void);
void hfn_session_fail_exec(bool was_verified);
/* From now on the process must not make the system calls of these groups (HFN_CALLS_* of
 * os/hot_path.h). */
void hfn_session_forbid_calls(uint32_t groups);

#endif
