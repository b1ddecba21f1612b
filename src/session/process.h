/* SPDX-License-Identifier: MIT */
/* Counts in the calling process: follows the dynamic linker, and hooks each loaded module that has
 * a plan.  A callback supplies the plans, which come from a scan in this process or from a
 * launcher. */
#ifndef HFN_SESSION_PROCESS_H
#define HFN_SESSION_PROCESS_H

#include "base/memory.h"
#include "live/live.h"
#include "live/plan_channel.h"
#include "os/os.h"
#include "session/runtime.h"

#include <hotfn/lowlevel/counters.h>
#include <hotfn/lowlevel/scan.h>
#include <hotfn/session.h>

/* Find or build the plan of a loaded module.  *live_module is its number in the live record,
 * UINT32_MAX if it is not recorded; *plan_bytes may be NULL if there is nothing to hook. */
typedef struct hfn_plan_source {
    void (*find)(void *user, const hfn_plan_request *module, bool is_main, uint32_t *live_module,
                 const void **plan_bytes, uint64_t *plan_byte_count);
    /* As hfn_process_describe_module, which is used if this is NULL. */
    bool (*describe)(void *user, const hfn_os_module *module, hfn_plan_request *out);
    /* The groups of each function of a module, as bits; NULL if there are no groups. */
    const uint64_t *(*get_groups)(void *user, uint32_t live_module);
    void *user;
} hfn_plan_source;

typedef struct hfn_loaded_module {
    uint64_t base, end, path_hash;
    uint32_t live_module;  /* UINT32_MAX: not recorded */
    uint32_t hooks_module; /* UINT32_MAX: no hooks */
    /* Functions that hotfn hooks for its own use and does not count: the function that the
     * dynamic linker calls when modules change, and those that a runtime's tracer replaces. */
    uint32_t own_functions[HFN_MAX_REPLACED + 1];
    uint32_t own_count;
    hotfn_plan *plan;       /* kept for the hooks; NULL if none */
    const uint64_t *groups; /* kept; per function; NULL: none is in a group */
    bool seen;              /* by the current update            */
    bool is_new;            /* not committed yet                */
} hfn_loaded_module;

typedef struct hfn_process {
    hotfn_env env;
    uint32_t flags;           /* HOTFN_SESSION_* */
    hfn_live *live;           /* kept, owned by the session */
    hotfn_counters *counters; /* owned */
    hotfn_hooks *hooks;       /* owned */
    hfn_plan_source source;
    const hfn_runtime *runtime; /* kept; NULL: none */
    hfn_loaded_module *loaded;
    size_t loaded_count, loaded_capacity;
    _Atomic uint32_t busy; /* 1: the hooks are changed or checked now              */
    uint32_t list_changes; /* 1: the list of modules is incomplete; atomic         */
    uint32_t id;           /* of the process that has the hooks                     */
    bool forbids_checks;   /* the process filters its system calls */
    bool follows_modules;  /* the watched function is hooked */
    /* Replaced for a runtime, until the pool of methods is hooked and can list them. */
    struct {
        uint32_t live_module, function;
    } replaced[HFN_MAX_REPLACED];
    uint32_t replaced_count;
    uint64_t off_groups;   /* bits of the groups that are switched off                  */
    hfn_start_stats stats; /* summed over all commits           */
} hfn_process;

/* Is it the module that contains hotfn, which is never hooked? */
bool hfn_process_is_own_module(const hfn_os_module *module);
/* Fill in the request for the module's plan; false if it has no file: the vdso, or a file that is
 * gone. */
bool hfn_process_describe_module(const hfn_os_module *module, hfn_plan_request *out);

/* Begin with counters over the live record's memory, and an empty hook set with hook_flags
 * (HOTFN_HOOKS_*). */
hotfn_status hfn_process_init(hfn_process *p, hfn_live *live, uint32_t flags, uint32_t hook_flags,
                              hfn_plan_source source, const hotfn_env *env, hotfn_error *err);
/* Measure the cost of hooks before the first start in this process, so that the start need not. */
void hfn_process_measure_hooks(hfn_live *live);
/* Hook the modules that were loaded since the last update, and forget those that were unloaded. */
hotfn_status hfn_process_update(hfn_process *p, hotfn_error *err);
/* groups.c: switch groups of functions off, before a commit of new hooks.  Does nothing while no
 * group is off. */
void hfn_process_switch_new(hfn_process *p);
/* groups.c: switch the groups with these bits off, and all others on. */
hotfn_status hfn_process_switch(hfn_process *p, uint64_t off_groups, hotfn_error *err);
/* Write the hooks that wait for it, and record the result. */
hotfn_status hfn_process_commit(hfn_process *p, hotfn_error *err);
/* check.c: compare the patches with memory, and mark the functions whose patches were overwritten.
 * False if some could not be compared, or if this is not the process that has the hooks (after
 * vfork).  Any thread, also in a signal handler. */
bool hfn_process_check(hfn_process *p);
/* Exclude checks while the hooks change. */
void hfn_process_begin_change(hfn_process *p);
void hfn_process_end_change(hfn_process *p);
/* True if hotfn hooks this function of the module for its own use. */
bool hfn_process_owns(const hfn_loaded_module *m, uint32_t function_index);
/* allocators.c: with HOTFN_TIMING_ALLOC, find the functions that allocate and free memory. */
void hfn_process_find_allocators(const hfn_process *p, const hfn_loaded_module *m);
/* end_times.c: after the hooks are removed, wait until no other thread is in a stub or in code of
 * hotfn; false if one stays there for some seconds. */
bool hfn_process_wait_outside(const hotfn_hooks *hooks);
/* end_times.c: after the hooks are removed, end the timed calls that are open. */
void hfn_process_end_times(const hfn_process *p);
/* False if a thread may still run an entry or exit probe of an earlier session; then the state of
 * that session's timing must not be replaced. */
bool hfn_process_may_time(void);
/* Restore the bytes and release everything but the live record.  A status other than HOTFN_OK means
 * that some bytes were not restored; *remaining is the number of hooks that are still in place. */
hotfn_status hfn_process_finish(hfn_process *p, uint32_t *remaining, hotfn_error *why);

#endif
