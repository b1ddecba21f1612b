/* SPDX-License-Identifier: MIT */
/* What a session does inside the process that it counts: keep up with the loaded modules, hook the
 * ones that somebody has a plan for, follow fork().  Where plans come from (an own scan, or a parent)
 * is a callback. */
#ifndef HFN_PROCESS_H
#define HFN_PROCESS_H

#include "base/memory.h"
#include "os/os.h"

#include <hotfn/lowlevel/target.h>
#include <hotfn/session.h>

/* Find or make the plan of a module that is loaded.  *live_module is its number in the live record
 * (UINT32_MAX: not ours); *plan_bytes may be NULL: nothing to hook in it. */
typedef struct hfn_plan_source {
    void (*find)(void *user, const hotfn_request *module, bool is_main, uint32_t *live_module,
                 const void **plan_bytes, uint64_t *plan_byte_count);
    void *user;
} hfn_plan_source;

typedef struct hfn_loaded_module {
    uint64_t base, end, path_hash;
    uint32_t live_module;  /* UINT32_MAX: not ours */
    uint32_t hooks_module; /* UINT32_MAX: no hooks */
    uint32_t own_function; /* hooked for ourselves, not counted; UINT32_MAX: none */
    hotfn_plan *plan;      /* kept for the hooks; NULL if none */
    bool seen;             /* in the walk that is under way    */
    bool is_new;           /* not committed yet                */
} hfn_loaded_module;

typedef struct hfn_process {
    hotfn_env env;
    uint32_t flags;           /* HOTFN_SESSION_* */
    hotfn_live *live;         /* kept, owned by the session */
    hotfn_counters *counters; /* owned */
    hotfn_hooks *hooks;       /* owned */
    hfn_plan_source source;
    hfn_loaded_module *loaded;
    size_t loaded_count, loaded_capacity;
    bool follows_loader;      /* the loader's breakpoint is hooked */
    hotfn_commit_stats stats; /* summed over all commits           */
} hfn_process;

/* Counters over the live record's memory, and an empty hook set with hook_flags (HOTFN_HOOKS_*). */
hotfn_status hfn_process_init(hfn_process *p, hotfn_live *live, uint32_t flags, uint32_t hook_flags,
                              hfn_plan_source source, const hotfn_env *env, hotfn_error *err);
/* Look at the loaded modules; hook new ones, forget those that went. */
hotfn_status hfn_process_update(hfn_process *p, hotfn_error *err);
/* code_map.c: where sampled calls find out who called them; nothing if none are sampled. */
void hfn_process_map_code(const hfn_process *p);
void hfn_process_forget_code(const hfn_process *p); /* nobody looks any more */
/* allocators.c: with HOTFN_TIMING_ALLOC, which of the module's functions are malloc and its like. */
void hfn_process_find_allocators(const hfn_process *p, const hfn_loaded_module *m);
/* process_times.c.  Behind the hooks' removal: calls that are open end now. */
void hfn_process_end_times(const hfn_process *p);
/* False: a thread of an earlier session may still be at an end of a call, and no other engine may come into its place. */
bool hfn_process_may_time(void);
/* Restore the bytes and release everything but the live record.  A status other than HOTFN_OK means that
 * bytes remain changed; *remaining is the number of hooks among them. */
hotfn_status hfn_process_finish(hfn_process *p, uint32_t *remaining, hotfn_error *why);

#endif
