/* SPDX-License-Identifier: MIT */
/* A hook set patches the modules of the running process as their plans (plan.h) describe, and
 * restores the original bytes when the hooks are removed. */
#ifndef HOTFN_LOWLEVEL_HOOKS_H
#define HOTFN_LOWLEVEL_HOOKS_H

#include <hotfn/hooks.h>
#include <hotfn/lowlevel/plan.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How a stub finds the counters of the calling thread.  The thread-local variable at
 * fs:[displacement] (gs on i386, TPIDR_EL0 on ARM64) holds the address of the thread's row.
 * While it is 0, the stub calls slow_path (contract: counters.h) and reads it again.  Slot n is
 * at row + slot_base_bytes + 8 * n. */
typedef struct hotfn_row_access {
    uint32_t size; /* sizeof(hotfn_row_access) */
    int32_t displacement;
    void (*slow_path)(void);
    uint32_t slot_base_bytes;
    uint32_t reserved;
    /* TIME, SAMPLE: stubs call these before and after the function; both preserve every register.
     * NULL: no function can be timed. */
    void (*time_enter)(void);
    void (*time_exit)(void);
    void (*personality)(
        void); /* personality routine of stubs: ends a timed call that an exception leaves */
    /* SAMPLE: the skip word (u32) of slot n is at row + skip_base_bytes + 4 * n.  Stubs count it
     * down; time_enter sets it again.  0: no sampling. */
    uint32_t skip_base_bytes;
    uint32_t reserved2;
} hotfn_row_access;
#define HOTFN_ROW_ACCESS_INIT                                                                      \
    {                                                                                              \
        (uint32_t)sizeof(hotfn_row_access), 0, 0, 0, 0, 0, 0, 0, 0, 0                              \
    }

#define HOTFN_ACTION_COUNT 1  /* add one to the slot of the thread's row                          */
#define HOTFN_ACTION_CALL 2   /* call callback(user) before the function; registers are preserved */
#define HOTFN_ACTION_FLOOR 3  /* do nothing: measures the minimum cost of a hook                  */
#define HOTFN_ACTION_TIME 4   /* COUNT, and measure each call; only HOTFN_VERDICT_TIMED functions */
#define HOTFN_ACTION_SAMPLE 5 /* COUNT, and TIME when the slot's skip word is 0                   */
#define HOTFN_ACTION_REPLACE 6 /* jump to replacement instead                                     */
#define HOTFN_ACTION_FILTER 7  /* filter decides whether the function runs                        */

typedef struct hotfn_hook_action {
    uint32_t size; /* sizeof(hotfn_hook_action) */
    uint32_t kind; /* HOTFN_ACTION_*            */
    uint32_t slot; /* COUNT, TIME               */
    uint32_t reserved;
    /* CALL: runs in the calling thread; calls that it makes are not counted. */
    void (*callback)(void *user);
    void *user;
    hotfn_code replacement; /* REPLACE: a function of the same type */
    /* REPLACE: receives a function that does what the replaced one did, before its first call can
     * reach the replacement; may be NULL. */
    hotfn_code *original;
    hotfn_hook_filter_fn filter; /* FILTER: filter(user, call) */
} hotfn_hook_action;
#define HOTFN_HOOK_ACTION_INIT                                                                     \
    {                                                                                              \
        (uint32_t)sizeof(hotfn_hook_action), 0, 0, 0, 0, 0, 0, 0, 0                                \
    }

/* The result of one commit. */
typedef struct hotfn_commit_stats {
    uint32_t size; /* sizeof(hotfn_commit_stats) */
    uint32_t hooked;
    uint32_t refused;
    uint32_t call_sites; /* direct calls and jumps that were redirected to a stub */
    uint64_t stub_bytes; /* generated code                                        */
    uint64_t unwind_bytes;
    uint64_t table_bytes;       /* memory of the hook set's own tables             */
    uint64_t copied_page_bytes; /* text pages of which the process got private copies */
    uint64_t total_ns;
} hotfn_commit_stats;
#define HOTFN_COMMIT_STATS_INIT                                                                    \
    {                                                                                              \
        (uint32_t)sizeof(hotfn_commit_stats), 0, 0, 0, 0, 0, 0, 0, 0                               \
    }

/*
 * Request hooks on many functions of one module, whose RVA 0 is loaded at base: time hooks where
 * the row access and the plan allow them, otherwise count hooks.  Nothing is written before
 * hotfn_hooks_commit.
 *
 * plan    kept until the module is forgotten or the set is destroyed.
 * slots   borrowed; slots[function_index] for each function of the image, UINT32_MAX for no hook.
 * module  receives a handle for the calls below; untouched on failure.
 *
 * HOTFN_OK, HOTFN_E_UNSUPPORTED (the plan is for another machine), HOTFN_E_STATE (the set has no
 * row access), HOTFN_E_LIMIT (a slot is out of the reach of stubs), HOTFN_E_NO_MEMORY (some hooks
 * may have been requested).  One thread at a time per set.  Since 0.1.
 */
HOTFN_API hotfn_status hotfn_hooks_add_module(hotfn_hooks *hooks, const hotfn_plan *plan,
                                              uint64_t base, const uint32_t *slots,
                                              uint32_t *module, hotfn_error *err);
/*
 * Request one hook with any action.
 *
 * plan    kept until the module is forgotten or the set is destroyed.
 * action  borrowed.
 * module  receives the module's handle; untouched on failure.
 *
 * HOTFN_OK and the errors of hotfn_hooks_add_module; HOTFN_E_NOT_FOUND (the plan has no such
 * function), HOTFN_E_UNSUPPORTED (the function may not be timed, replaced or filtered),
 * HOTFN_E_STATE (TIME without timing functions in the row access), HOTFN_E_OPTION (unknown action,
 * or no function for it). One thread at a time per set.  Since 0.1.
 */
HOTFN_API hotfn_status hotfn_hooks_add(hotfn_hooks *hooks, const hotfn_plan *plan, uint64_t base,
                                       uint32_t function_index, const hotfn_hook_action *action,
                                       uint32_t *module, hotfn_error *err);
/*
 * Write all hooks that were requested since the last commit.  Stubs are complete and executable
 * before the first patch; every patch is preceded by a comparison with the bytes in the plan.  A
 * function that cannot be patched is refused with a reason (hotfn_hooks_each_refused); the others
 * are hooked.
 *
 * stats  receives the result; may be NULL.
 *
 * HOTFN_OK, HOTFN_E_NO_MEMORY, HOTFN_E_DENIED (nothing could be written).  One thread at a time
 * per set. Since 0.1.
 */
HOTFN_API hotfn_status hotfn_hooks_commit(hotfn_hooks *hooks, hotfn_commit_stats *stats,
                                          hotfn_error *err);

/* Call visit for each hook that the last commit refused, with the module's handle, HOTFN_REASON_*
 * and the offset from the function's entry that the reason is about.  visit must not change the
 * set.  Does nothing if hooks or visit is NULL.  One thread at a time per set.  Since 0.1. */
typedef void (*hotfn_refused_fn)(void *user, uint32_t module, uint32_t function_index,
                                 uint32_t reason, uint32_t offset);
HOTFN_API void hotfn_hooks_each_refused(const hotfn_hooks *hooks, hotfn_refused_fn visit,
                                        void *user);

/* Forget the hooks of a module that was unmapped; no memory of the module is accessed.  One
 * thread at a time per set.  Since 0.1. */
HOTFN_API void hotfn_hooks_forget_module(hotfn_hooks *hooks, uint32_t module);
/* A range of stubs with its unwind tables, for code that serves unwinders (_dl_find_object). */
typedef struct hotfn_stub_region {
    uint32_t size; /* sizeof(hotfn_stub_region) */
    uint32_t reserved;
    uint64_t begin, end;      /* addresses of generated code                       */
    const void *eh_frame;     /* view; ends with a zero word                       */
    const void *eh_frame_hdr; /* view; with a sorted binary-search table           */
} hotfn_stub_region;
#define HOTFN_STUB_REGION_INIT                                                                     \
    {                                                                                              \
        (uint32_t)sizeof(hotfn_stub_region), 0, 0, 0, 0, 0                                         \
    }

/* Find the region that contains pc.  Returns 1 and sets *out, or returns 0.  Async-signal-safe
 * and lock-free. Any thread, also while another thread commits.  Since 0.1. */
HOTFN_API int32_t hotfn_hooks_find_region(const hotfn_hooks *hooks, uint64_t pc,
                                          hotfn_stub_region *out);
/* Find the FDE that describes pc (a view), as _Unwind_Find_FDE returns it; *begin receives the
 * start of the code that the FDE describes.  NULL if pc is in no stub.  Async-signal-safe and
 * lock-free.  Any thread.  Since 0.1. */
HOTFN_API const void *hotfn_hooks_find_fde(const hotfn_hooks *hooks, uint64_t pc, uint64_t *begin);
/* Get the number of regions.  Any thread.  Since 0.1. */
HOTFN_API uint32_t hotfn_hooks_get_region_count(const hotfn_hooks *hooks);
/* Get one region, in the order of addresses.  HOTFN_OK, HOTFN_E_NOT_FOUND past the end,
 * HOTFN_E_OPTION. Any thread.  Since 0.1. */
HOTFN_API hotfn_status hotfn_hooks_get_region(const hotfn_hooks *hooks, uint32_t index,
                                              hotfn_stub_region *out);
/* Make an ELF object in memory for each region, as gdb's JIT interface expects it, and store at
 * most capacity addresses and sizes.  The objects are never freed.  Returns how many were
 * stored.  One thread at a time per set.  Since 0.1. */
HOTFN_API uint32_t hotfn_hooks_debug_objects(const hotfn_hooks *hooks, const void **objects,
                                             uint64_t *byte_counts, uint32_t capacity);
/* Call visit for each stub of an installed hook, with the address and size of its code and its
 * function.  visit must not change the set.  Does nothing if hooks or visit is NULL.  One thread
 * at a time per set.  Since 0.1. */
typedef void (*hotfn_stub_fn)(void *user, uint64_t address, uint32_t byte_count, uint32_t module,
                              uint32_t function_index);
HOTFN_API void hotfn_hooks_each_stub(const hotfn_hooks *hooks, hotfn_stub_fn visit, void *user);

#ifdef __cplusplus
}
#endif

#endif
