/* SPDX-License-Identifier: MIT */
/* A hook set's tables.  Small on purpose: four bytes a hook; what else is needed is computed from the
 * plan, which is kept, and from the order of the stubs, which is the order of the hooks. */
#ifndef HFN_HOOKS_HOOKSET_H
#define HFN_HOOKS_HOOKSET_H

#include "arch/stub.h"
#include "hooks/regions.h"
#include "plan/plan.h"

#include <hotfn/lowlevel/hooks.h>

/* In a batch's hooks[]: the plan's entry, and whether its patch stands
 * or was refused. */
#define HFN_HOOK_STANDS UINT32_C(0x80000000)
#define HFN_HOOK_REFUSED UINT32_C(0x40000000)
#define HFN_HOOK_FAR UINT32_C(0x20000000)   /* its slot: HFN_STUB_FAR_SLOT */
#define HFN_HOOK_STAYS UINT32_C(0x10000000) /* a jump of its own cannot be made to come back */
#define HFN_HOOK_ENTRY UINT32_C(0x0fffffff)

/* The longest head and the longest moved code. */
#define HFN_STUB_MAX_BYTES (208 + HFN_MOVED_MAX)

typedef enum hfn_batch_state {
    HFN_BATCH_EMPTY = 0, /* a free place in the table                           */
    HFN_BATCH_PENDING,   /* asked for, not yet committed                        */
    HFN_BATCH_STANDING,
    HFN_BATCH_RETIRED /* removed or forgotten; its stubs may be used again   */
} hfn_batch_state;

/* A stub that lies where a punned jump can only go. */
typedef struct hfn_aside {
    uint32_t hook;    /* index in hooks[]    */
    uint64_t address; /* of its first byte   */
} hfn_aside;

/* Where callers of a hooked function may be sent. */
typedef struct hfn_site_target {
    uint32_t rva; /* of the function                                          */
    int32_t stub; /* where its stub is entered, from the module's base; 0: nowhere */
} hfn_site_target;

/* Hooks of one module and kind that came together, in the order of the plan. */
typedef struct hfn_batch {
    hfn_batch_state state;
    uint32_t module;
    uint32_t kind; /* HOTFN_ACTION_* */
    uint32_t hook_count;
    uint32_t *hooks;
    uint32_t hook_capacity;
    bool placed;    /* it has stubs                            */
    uint64_t stubs; /* address of the first one                */
    hfn_aside *asides;
    size_t aside_count, aside_capacity;
    uint32_t sites_written; /* call sites that lead to its stubs */
    /* Until the commit or removal is over: */
    hfn_site_target *targets; /* by the plan's entry, or NULL */
    /* Until the commit is over: */
    uint32_t *slots;            /* COUNT, TIME: [hook_capacity] */
    hotfn_hook_action *actions; /* CALL: [hook_capacity]  */
} hfn_batch;

typedef struct hfn_module {
    const hotfn_plan *plan; /* NULL once forgotten */
    uint64_t base;
} hfn_module;

typedef struct hfn_refusal {
    uint32_t module, function_index, reason, offset;
} hfn_refusal;

struct hotfn_hooks {
    hotfn_env env;
    hotfn_hook_options options;
    hotfn_row_access access;
    hfn_module *modules;
    hfn_batch *batches;
    hfn_refusal *refusals;
    size_t module_count, module_capacity;
    size_t batch_count, batch_capacity;
    size_t refusal_count, refusal_capacity;
    hfn_regions regions;
    bool refusals_lost;                /* no memory for all of them */
    uint64_t stub_bytes, unwind_bytes; /* made by this commit       */
};

static inline const hfn_module *hfn_batch_module(const hotfn_hooks *hooks, const hfn_batch *batch)
{
    return &hooks->modules[batch->module];
}

static inline void hfn_batch_hook(const hotfn_hooks *hooks, const hfn_batch *batch, uint32_t index,
                                  hfn_plan_hook *out)
{
    hfn_plan_hook_at(hfn_batch_module(hooks, batch)->plan, batch->hooks[index] & HFN_HOOK_ENTRY,
                     out);
    out->far_slot = (batch->hooks[index] & HFN_HOOK_FAR) != 0;
}

/* Hooks in place. */
uint32_t hfn_hooks_count_standing(const hotfn_hooks *hooks);

static inline bool hfn_hooks_can_time(const hotfn_hooks *hooks)
{
    return hooks->access.time_enter && hooks->access.time_exit;
}

/* Does the code of a module lie farther apart than stubs may lie from it? */
static inline bool hfn_hooks_is_wide(const hotfn_hooks *hooks, const hotfn_plan *plan)
{
    int64_t begin = plan->reach_begin < 0 ? plan->reach_begin : 0;

    return (uint64_t)(plan->reach_end - begin) > hooks->options.near_range_bytes / 2;
}

/* The action of a pending hook. */
hotfn_hook_action hfn_batch_action(const hfn_batch *batch, uint32_t index);
/* Free what a batch holds; its place in the table is empty then. */
void hfn_batch_finish(hotfn_hooks *hooks, hfn_batch *batch);
/* Free what only a commit needs. */
void hfn_batch_settle(hotfn_hooks *hooks, hfn_batch *batch);

/* Mark a hook as refused and remember why (if there is no memory for that, the commit says so). */
void hfn_hooks_refuse(hotfn_hooks *hooks, hfn_batch *batch, uint32_t index, uint32_t reason,
                      uint32_t offset);

/* Walks a batch's hooks with their stubs' addresses. */
typedef struct hfn_stub_walk {
    const hotfn_hooks *hooks;
    const hfn_batch *batch;
    uint32_t index; /* of the current hook                     */
    uint32_t next_index;
    uint64_t next;    /* where the next stub begins              */
    uint64_t address; /* of the current stub                     */
    uint64_t entry;   /* where its patch jumps to                */
    uint32_t byte_count;
    const hfn_stub_shape *shape;
    hfn_stub_shape shape_room;
    hfn_plan_hook hook; /* the plan's view of the current hook     */
} hfn_stub_walk;

hfn_stub_walk hfn_stub_walk_begin(const hotfn_hooks *hooks, const hfn_batch *batch);
bool hfn_stub_walk_next(hfn_stub_walk *walk);

#endif
