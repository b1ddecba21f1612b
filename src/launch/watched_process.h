/* SPDX-License-Identifier: MIT */
/* The patches of one process that is watched (patch_watch.c). */
#ifndef HFN_LAUNCH_WATCHED_PROCESS_H
#define HFN_LAUNCH_WATCHED_PROCESS_H

#include "live/live.h"
#include "os/remote.h"
#include "plan/plan.h"

/* The plan of a module of the live record, by its index. */
typedef struct hfn_watched_plan {
    hotfn_plan *plan;  /* NULL: it has none, or it was not read yet */
    const void *bytes; /* of the plan, mapped */
    uint64_t byte_count;
} hfn_watched_plan;

enum { HFN_WATCHED_SITE_BYTES = 8, HFN_WATCHED_PAGE_BYTES = 4096 };

typedef struct hfn_watched_patch {
    uint8_t bytes[HFN_WATCHED_SITE_BYTES];
    uint8_t state; /* patch_state */
} hfn_watched_patch;

/* Where the process has a module. */
typedef struct hfn_watched_place {
    uint64_t base; /* 0: nowhere */
    bool is_listed;
    uint32_t patch_count;
    hfn_watched_patch *patches; /* by entry of the plan; NULL if base is 0 */
} hfn_watched_place;

typedef struct hfn_watched_process {
    hfn_remote remote;
    uint32_t process; /* of its thread cells (live/rows.h); 0: unknown */
    bool is_listed;
    hfn_watched_place *places; /* by index of the module */
    uint32_t place_capacity;
    uint64_t page_at; /* address of the page in `page`; 0: none */
    uint8_t page[HFN_WATCHED_PAGE_BYTES];
} hfn_watched_process;

/* What a look needs; is_removed: the patches were removed on purpose (NULL: that cannot be). */
typedef struct hfn_patch_look {
    hotfn_env env;
    hfn_live *live;
    const hfn_watched_plan *plans;
    uint32_t plan_count;
    bool is_last; /* one look decides: a patch with foreign bytes is not examined again */
    bool (*is_removed)(const void *user);
    const void *user;
} hfn_patch_look;

/* Compare all patches of the process with its memory, and mark the functions whose patches were
 * overwritten.  True if there are patches and all are in place. */
bool hfn_watched_process_look(hfn_watched_process *process, const hfn_patch_look *look);
/* Forget what was seen, and free it. */
void hfn_watched_process_forget(hfn_watched_process *process, const hotfn_env *env);

#endif
