/* SPDX-License-Identifier: MIT */
/* The tables of a hook set.  A hook takes four bytes: everything else is computed from the plan,
 * which the set keeps, and from the order of the stubs, which is the order of the hooks. */
#ifndef HFN_HOOKS_HOOKSET_H
#define HFN_HOOKS_HOOKSET_H

#include "arch/stub.h"
#include "hooks/regions.h"
#include "hooks/space.h"
#include "plan/plan.h"

#include <hotfn/lowlevel/hooks.h>

/* A word of a batch's hooks[]: the index of the plan's entry, and these flags. */
#define HFN_HOOK_PATCHED UINT32_C(0x80000000)
#define HFN_HOOK_REFUSED UINT32_C(0x40000000)
#define HFN_HOOK_FAR_SLOT UINT32_C(0x20000000) /* its slot needs HFN_STUB_FAR_SLOT */
#define HFN_HOOK_BLOCKED UINT32_C(0x10000000)  /* one of its tail exits cannot be patched */
#define HFN_HOOK_OFF UINT32_C(0x08000000)      /* its function is switched off (switch.c) */
#define HFN_HOOK_ENTRY UINT32_C(0x07ffffff)

/* Maximum size of a stub: the longest head and the longest moved code. */
#define HFN_STUB_MAX_BYTES (208 + HFN_MOVED_MAX)

typedef enum hfn_batch_state {
    HFN_BATCH_EMPTY = 0, /* a free place in the table                           */
    HFN_BATCH_PENDING,   /* requested, not yet committed                        */
    HFN_BATCH_PATCHED,
    HFN_BATCH_RETIRED /* removed or forgotten; its stubs may be reused       */
} hfn_batch_state;

/* An out-of-line trampoline: the stub of a punned jump.  It is not placed with the other stubs of
 * its batch, because the fixed bytes of the jump limit its address. */
typedef struct hfn_outlying_stub {
    uint32_t hook;    /* index in hooks[]    */
    uint64_t address; /* of its first byte   */
} hfn_outlying_stub;

/* Where the call sites of a hooked function are redirected to. */
typedef struct hfn_site_target {
    uint32_t rva; /* of the function                                          */
    int32_t stub; /* address of its stub's entry minus the module's base; 0: none */
} hfn_site_target;

/* Hooks of one module and one kind that were requested together, in the order of the plan. */
typedef struct hfn_batch {
    hfn_batch_state state;
    uint32_t module;
    uint32_t kind; /* HOTFN_ACTION_* */
    uint32_t hook_count;
    uint32_t *hooks;
    uint32_t hook_capacity;
    bool placed;    /* its stubs exist                         */
    uint64_t stubs; /* address of the first one                */
    hfn_outlying_stub *outlying;
    size_t outlying_count, outlying_capacity;
    uint32_t sites_written; /* call sites that are redirected to its stubs */
    /* During a commit or removal only: */
    hfn_site_target *targets; /* indexed by the plan's entry, or NULL */
    /* Until the commit has ended: */
    uint32_t *slots;            /* COUNT, TIME: [hook_capacity] */
    hotfn_hook_action *actions; /* CALL, REPLACE, FILTER: [hook_capacity] */
} hfn_batch;

typedef struct hfn_module {
    const hotfn_plan *plan; /* NULL after hotfn_hooks_forget_module */
    uint64_t base;
} hfn_module;

typedef struct hfn_refusal {
    uint32_t module, function_index, reason, offset;
} hfn_refusal;

/* An object that is released when the set is destroyed, because plans of the set refer to it. */
typedef struct hfn_kept {
    void *object;
    void (*release)(void *object);
} hfn_kept;

struct hotfn_hooks {
    hotfn_env env;
    hotfn_hook_options options;
    hotfn_row_access access;
    const hfn_hook_space *space; /* kept; NULL: this process */
    hfn_module *modules;
    hfn_batch *batches;
    hfn_refusal *refusals;
    size_t module_count, module_capacity;
    size_t batch_count, batch_capacity;
    size_t refusal_count, refusal_capacity;
    hfn_kept *kept;
    size_t kept_count, kept_capacity;
    hfn_regions regions;
    uint64_t count_shared;             /* void (*)(void *slot_bytes); 0: none */
    bool knows_entries;                /* hfn_hooks_add_known */
    bool has_own_threads;              /* of a module; shared.c */
    bool row_in_gs;                    /* access.displacement is from the gs base */
    bool refusals_lost;                /* no memory for some refusals */
    uint64_t stub_bytes, unwind_bytes; /* of this commit            */
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
    out->far_slot = (batch->hooks[index] & HFN_HOOK_FAR_SLOT) != 0;
}

/* The number of hooks whose patch is in place. */
uint32_t hfn_hooks_count_patched(const hotfn_hooks *hooks);

static inline bool hfn_hooks_can_time(const hotfn_hooks *hooks)
{
    return hooks->access.time_enter && hooks->access.time_exit;
}

/* Whether a module is too large for one region of stubs that all of its code reaches. */
static inline bool hfn_hooks_is_wide(const hotfn_hooks *hooks, const hotfn_plan *plan)
{
    int64_t begin = plan->reach_begin < 0 ? plan->reach_begin : 0;

    return (uint64_t)(plan->reach_end - begin) > hooks->options.near_range_bytes / 2;
}

/* replaceable.c: HOTFN_OK, or HOTFN_E_UNSUPPORTED with the reason. */
hotfn_status hfn_hooks_check_replaceable(const hotfn_plan *plan, uint32_t entry, uint32_t kind,
                                         hotfn_error *err);

/* replaceable.c: hotfn_hooks_add for a replacement that was made for this very function, so it
 * needs no proof: nothing is passed in flags or below the stack pointer.  Where the hook is at a
 * call inside the function, this call is replaced, and the original is the called function. */
hotfn_status hfn_hooks_add_known(hotfn_hooks *hooks, const hotfn_plan *plan, uint64_t base,
                                 uint32_t function_index, const hotfn_hook_action *action,
                                 uint32_t *module, hotfn_error *err);

/* switch.c: whether a function of a module is switched off. */
typedef bool (*hfn_hook_off_fn)(void *user, uint32_t module, uint32_t function_index);
/* Switch functions that are counted or timed on and off, in batches that are committed and in those
 * that are not.  hfn_hooks_restore_off and hotfn_hooks_commit then change the code. */
void hfn_hooks_switch(hotfn_hooks *hooks, hfn_hook_off_fn is_off, void *user);
/* remove.c: restore the original bytes of the functions that are switched off.  As
 * hotfn_hooks_remove, but the stubs are kept, so that the functions can be switched on again. */
hotfn_status hfn_hooks_restore_off(hotfn_hooks *hooks, hotfn_error *err);

/* shared.c: the function by which stubs count in a process whose threads may have no word for a row
 * pointer.  It is called with the offset of a slot in a row, in any thread. */
void hfn_hooks_set_count_shared(hotfn_hooks *hooks, uint64_t function);
/* Let stubs find the row by the gs base, which each thread of any program has. */
void hfn_hooks_use_gs(hotfn_hooks *hooks);
/* Whether the plan can be hooked: HOTFN_OK, or HOTFN_E_UNSUPPORTED if it needs that function. */
hotfn_status hfn_hooks_check_threads(hotfn_hooks *hooks, const hotfn_plan *plan, hotfn_error *err);
/* Before a commit: let pending batches count by that function if a module needs it. */
void hfn_hooks_share_counts(hotfn_hooks *hooks);

/* Release an object when the set is destroyed; false if there is no memory. */
bool hfn_hooks_keep(hotfn_hooks *hooks, void *object, void (*release)(void *object));

/* The action of a pending hook. */
hotfn_hook_action hfn_batch_action(const hfn_batch *batch, uint32_t index);
/* Free a batch; its place in the table becomes empty. */
void hfn_batch_finish(hotfn_hooks *hooks, hfn_batch *batch);
/* Free what only a commit needs: slots and actions. */
void hfn_batch_free_requests(hotfn_hooks *hooks, hfn_batch *batch);

/* Mark a hook as refused and store the reason; without memory for it, the commit returns an
 * error. */
void hfn_hooks_refuse(hotfn_hooks *hooks, hfn_batch *batch, uint32_t index, uint32_t reason,
                      uint32_t offset);

/* Iterates over the hooks of a batch with the addresses of their stubs. */
typedef struct hfn_stub_walk {
    const hotfn_hooks *hooks;
    const hfn_batch *batch;
    uint32_t index; /* of the current hook                     */
    uint32_t next_index;
    uint64_t next;    /* address of the next stub                */
    uint64_t address; /* of the current stub                     */
    uint64_t entry;   /* target of its patch                     */
    uint32_t byte_count;
    const hfn_stub_shape *shape;
    hfn_stub_shape shape_room;
    hfn_plan_hook hook; /* the current hook in the plan            */
} hfn_stub_walk;

hfn_stub_walk hfn_stub_walk_begin(const hotfn_hooks *hooks, const hfn_batch *batch);
bool hfn_stub_walk_next(hfn_stub_walk *walk);

#endif
