/* SPDX-License-Identifier: MIT */
/* Hooks: a plan says what to change in a module (bytes in, bytes out, made anywhere); a hook set
 * changes the running process by it and can put every byte back. */
#ifndef HOTFN_HOOKS_H
#define HOTFN_HOOKS_H

#include <hotfn/lowlevel/verdicts.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Plan: all that is needed to hook one image's functions, as one relocatable block of bytes. */

typedef struct hotfn_plan hotfn_plan;

typedef struct hotfn_plan_info {
    uint32_t size;           /* sizeof(hotfn_plan_info) */
    uint32_t machine;        /* HOTFN_MACHINE_*                               */
    uint32_t function_count; /* of the image, hookable or not                 */
    uint32_t entry_count;    /* functions that can be hooked                  */
    uint32_t id_kind;        /* the image's id: HOTFN_ID_*                    */
    uint32_t id_bytes;
    uint8_t id[32];
    const uint8_t *bytes; /* view: the block                               */
    uint64_t byte_count;
} hotfn_plan_info;
#define HOTFN_PLAN_INFO_INIT                                                                       \
    {                                                                                              \
        (uint32_t)sizeof(hotfn_plan_info), 0, 0, 0, 0, 0, { 0 }, 0, 0                              \
    }

/* One hookable function of a plan; entries are sorted by rva. */
typedef struct hotfn_plan_entry {
    uint32_t size;           /* sizeof(hotfn_plan_entry)                      */
    uint32_t function_index; /* in the image's hotfn_functions                */
    uint64_t rva;            /* of the function                               */
    uint32_t strategy;       /* HOTFN_STRATEGY_*                              */
    uint32_t flags;          /* HOTFN_VERDICT_*                               */
    uint32_t patch_offset;   /* bytes from the entry to the patch             */
    uint32_t patch_bytes;
} hotfn_plan_entry;
#define HOTFN_PLAN_ENTRY_INIT                                                                      \
    {                                                                                              \
        (uint32_t)sizeof(hotfn_plan_entry), 0, 0, 0, 0, 0, 0                                       \
    }

/* Make the plan of every hookable function.  The inputs are borrowed.  HOTFN_OK,
 * HOTFN_E_NO_MEMORY, HOTFN_E_LIMIT (image beyond 4 GiB).  Since 0.1. */
HOTFN_API hotfn_status hotfn_plan_build(hotfn_plan **out, const hotfn_image *image,
                                        const hotfn_functions *functions,
                                        const hotfn_verdicts *verdicts, const hotfn_env *env,
                                        hotfn_error *err);
/* Open a block made by hotfn_plan_build (kept; checked whole, but its checksum only if check_sum).
 * HOTFN_OK, HOTFN_E_FORMAT, HOTFN_E_MISMATCH (another version), HOTFN_E_NO_MEMORY.  Since 0.1. */
HOTFN_API hotfn_status hotfn_plan_open(hotfn_plan **out, const void *bytes, uint64_t byte_count,
                                       uint32_t check_sum, const hotfn_env *env, hotfn_error *err);
/* NULL is fine.  Since 0.1. */
HOTFN_API void hotfn_plan_destroy(hotfn_plan *plan);
/* What the plan is of (its block is a view), and its index-th hookable function, of info.entry_count.
 * HOTFN_OK, HOTFN_E_NOT_FOUND past the end, HOTFN_E_OPTION.  Since 0.1. */
HOTFN_API hotfn_status hotfn_plan_get_info(const hotfn_plan *plan, hotfn_plan_info *out);
HOTFN_API hotfn_status hotfn_plan_get(const hotfn_plan *plan, uint32_t index,
                                      hotfn_plan_entry *out);

/* ---- Hook set. */

typedef struct hotfn_hooks hotfn_hooks;

/* How a stub reaches the calling thread's row of counters: one 8-byte variable at fs:[displacement]
 * holds the row's address, 0 until the thread's first hooked call; then slow_path is called (its
 * contract stands in counters.h) and the variable is read again.  Slot n of a row lies at
 * row + slot_base_bytes + 8 * n. */
typedef struct hotfn_row_access {
    uint32_t size; /* sizeof(hotfn_row_access) */
    int32_t displacement;
    void (*slow_path)(void);
    uint32_t slot_base_bytes;
    uint32_t reserved;
    void (*time_enter)(
        void); /* TIME: called around a function's body, at the stub's frame; keep every
                                  register.  NULL: nothing can be timed */
    void (*time_exit)(void);
    void (*personality)(void); /* of stubs: an exception that passes one ends its call */
    uint32_t
        skip_base_bytes; /* SAMPLE: slot n's skip word (u32) lies at row + that + 4 * n; 0: none.
                                  It is counted down, and set anew by time_enter */
    uint32_t reserved2;
} hotfn_row_access;
#define HOTFN_ROW_ACCESS_INIT                                                                      \
    {                                                                                              \
        (uint32_t)sizeof(hotfn_row_access), 0, 0, 0, 0, 0, 0, 0, 0, 0                              \
    }

#define HOTFN_HOOKS_SINGLE_THREADED                                                                \
    1u                           /* the caller knows that no other thread runs: skip quiescing */
#define HOTFN_HOOKS_NO_UNWIND 2u /* no unwind information                                      */
#define HOTFN_HOOKS_REGISTER_UNWIND                                                                \
    4u /* tell libgcc by __register_frame (embedding without an agent) */
#define HOTFN_HOOKS_KEEP_CALLS                                                                     \
    8u /* patch entries only; else direct calls go straight to stubs,
                                        * and stubs of what is called most hold more code than moved  */

/* A field left 0 asks for the default in brackets.  Fields are only appended. */
typedef struct hotfn_hook_options {
    uint32_t size;             /* sizeof(hotfn_hook_options)               */
    uint32_t flags;            /* HOTFN_HOOKS_* [none]                     */
    uint64_t near_range_bytes; /* stubs at most this far [2 GiB - 64 KiB]  */
    uint64_t quiesce_ns;       /* an attempt to stop all threads [50 ms]   */
} hotfn_hook_options;
#define HOTFN_HOOK_OPTIONS_INIT                                                                    \
    {                                                                                              \
        (uint32_t)sizeof(hotfn_hook_options), 0, 0, 0                                              \
    }

#define HOTFN_ACTION_COUNT                                                                         \
    1                       /* add one to slot of the thread's row                                */
#define HOTFN_ACTION_CALL 2 /* call callback(user) before the function, every register saved      */
#define HOTFN_ACTION_FLOOR                                                                         \
    3 /* jump in, jump back, nothing in between: what a hook costs at least */
#define HOTFN_ACTION_TIME                                                                          \
    4 /* COUNT, and see the function return; for HOTFN_VERDICT_TIMED only    */
#define HOTFN_ACTION_SAMPLE                                                                        \
    5 /* COUNT, and TIME for the calls that find 0 in the slot's skip word  */

typedef struct hotfn_hook_action {
    uint32_t size; /* sizeof(hotfn_hook_action) */
    uint32_t kind; /* HOTFN_ACTION_*            */
    uint32_t slot; /* COUNT, TIME               */
    uint32_t reserved;
    void (*callback)(
        void *user); /* CALL: runs in the calling thread, with its row at the discard row */
    void *user;
} hotfn_hook_action;
#define HOTFN_HOOK_ACTION_INIT                                                                     \
    {                                                                                              \
        (uint32_t)sizeof(hotfn_hook_action), 0, 0, 0, 0, 0                                         \
    }

/* What one commit did. */
typedef struct hotfn_commit_stats {
    uint32_t size; /* sizeof(hotfn_commit_stats) */
    uint32_t hooked;
    uint32_t refused;
    uint32_t call_sites; /* direct calls and jumps sent straight to a stub     */
    uint64_t stub_bytes; /* generated code                                     */
    uint64_t unwind_bytes;
    uint64_t table_bytes;       /* what the set itself keeps                          */
    uint64_t copied_page_bytes; /* text pages that became private by being written   */
    uint64_t total_ns;
} hotfn_commit_stats;
#define HOTFN_COMMIT_STATS_INIT                                                                    \
    {                                                                                              \
        (uint32_t)sizeof(hotfn_commit_stats), 0, 0, 0, 0, 0, 0, 0, 0                               \
    }

/*
 * Make an empty hook set for the running process.
 *
 * out     receives a set that the caller owns; untouched on failure.
 * access  borrowed; NULL if no hook counts.
 * HOTFN_OK, HOTFN_E_NO_MEMORY, HOTFN_E_OPTION.  One thread at a time per set.  Since 0.1.
 */
HOTFN_API hotfn_status hotfn_hooks_create(hotfn_hooks **out, const hotfn_hook_options *options,
                                          const hotfn_row_access *access, const hotfn_env *env,
                                          hotfn_error *err);

/*
 * Ask for count hooks, or for time hooks where access and plan allow, on many functions of one module, loaded with its RVA 0 at base.
 *
 * plan   kept until the module is forgotten or the set destroyed.
 * slots  borrowed; slots[function_index] for each function of the image, UINT32_MAX: leave alone.
 * module receives a handle for the calls below; untouched on failure.
 * Where slots do not follow the order of addresses, the stubs of the 256 lowest stand together.
 * Nothing is written before hotfn_hooks_commit.
 * HOTFN_OK, HOTFN_E_UNSUPPORTED (a plan for another machine), HOTFN_E_STATE (the set has no row access),
 * HOTFN_E_LIMIT (a slot out of stubs' reach), HOTFN_E_NO_MEMORY (some may be asked for).  Since 0.1.
 */
HOTFN_API hotfn_status hotfn_hooks_add_module(hotfn_hooks *hooks, const hotfn_plan *plan,
                                              uint64_t base, const uint32_t *slots,
                                              uint32_t *module, hotfn_error *err);
/* Ask for one hook with any action (copied).  HOTFN_OK and errors as hotfn_hooks_add_module; also
 * HOTFN_E_NOT_FOUND (the plan does not hold the function), HOTFN_E_UNSUPPORTED (it may not be timed), HOTFN_E_STATE
 * (TIME, but the counters do not time), HOTFN_E_OPTION (no such action, CALL without a callback).  Since 0.1. */
HOTFN_API hotfn_status hotfn_hooks_add(hotfn_hooks *hooks, const hotfn_plan *plan, uint64_t base,
                                       uint32_t function_index, const hotfn_hook_action *action,
                                       uint32_t *module, hotfn_error *err);
/*
 * Write all that was asked for since the last commit, as one batch: stubs are made and executable
 * first, then every site's bytes are compared with the plan and patched.  A site that cannot be
 * patched is refused with its reason (hotfn_hooks_each_refused) and the rest goes on.
 * HOTFN_OK, HOTFN_E_NO_MEMORY, HOTFN_E_DENIED (nothing could be written).  Since 0.1.
 */
HOTFN_API hotfn_status hotfn_hooks_commit(hotfn_hooks *hooks, hotfn_commit_stats *stats,
                                          hotfn_error *err);

/* Call visit for each hook that the last commit refused: the module's handle, HOTFN_REASON_*, and where it stands,
 * bytes from the function's entry.  visit leaves the set as it is.  NULL for either: nothing.  Since 0.1. */
typedef void (*hotfn_refused_fn)(void *user, uint32_t module, uint32_t function_index,
                                 uint32_t reason, uint32_t offset);
HOTFN_API void hotfn_hooks_each_refused(const hotfn_hooks *hooks, hotfn_refused_fn visit,
                                        void *user);

/* Put every byte back, but for the jumps at which timed calls end (hotfn_verdict.comes_to): a call may be open,
 * and they go on to where they led.  Stubs stay mapped for ever (a thread may still stand in one).  Sites whose
 * bytes somebody else changed since are left alone and reported by HOTFN_E_MISMATCH; those that cannot be written
 * any more, by HOTFN_E_DENIED.  HOTFN_OK; HOTFN_E_STATE (a thread could not be stopped) and HOTFN_E_NO_MEMORY:
 * nothing was removed, try again.  Since 0.1. */
HOTFN_API hotfn_status hotfn_hooks_remove(hotfn_hooks *hooks, hotfn_error *err);
/* The module was unmapped: forget its hooks without touching memory.  Since 0.1. */
HOTFN_API void hotfn_hooks_forget_module(hotfn_hooks *hooks, uint32_t module);
/* Remove what still stands, then free the tables.  NULL is fine.  Since 0.1. */
HOTFN_API void hotfn_hooks_destroy(hotfn_hooks *hooks);

/* A range of stubs with its unwind tables, for whoever answers unwinders (_dl_find_object). */
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

/* The region that holds pc.  1 and *out, or 0.  Async-signal-safe, lock-free: any thread, also while
 * another commits.  Since 0.1. */
HOTFN_API int32_t hotfn_hooks_find_region(const hotfn_hooks *hooks, uint64_t pc,
                                          hotfn_stub_region *out);
/* The FDE of the stub at pc, a view, for an unwinder that looks for it itself (_Unwind_Find_FDE); *begin is
 * where the code begins that it describes.  NULL: no stub is there.  As safe as find_region.  Since 0.1. */
HOTFN_API const void *hotfn_hooks_find_fde(const hotfn_hooks *hooks, uint64_t pc, uint64_t *begin);
/* How many regions there are, and the index-th by address.  HOTFN_OK, HOTFN_E_NOT_FOUND past the end,
 * HOTFN_E_OPTION.  Since 0.1. */
HOTFN_API uint32_t hotfn_hooks_get_region_count(const hotfn_hooks *hooks);
HOTFN_API hotfn_status hotfn_hooks_get_region(const hotfn_hooks *hooks, uint32_t index,
                                              hotfn_stub_region *out);
/* Make an ELF object in memory of each region (kept for good), as gdb's JIT interface takes them: at
 * most capacity addresses and sizes; answers how many.  Since 0.1. */
HOTFN_API uint32_t hotfn_hooks_debug_objects(const hotfn_hooks *hooks, const void **objects,
                                             uint64_t *byte_counts, uint32_t capacity);
/* Call visit for each standing stub (address and bytes of its code) with the function that it serves (perf map,
 * debuggers).  visit leaves the set as it is.  NULL for either: nothing.  Since 0.1. */
typedef void (*hotfn_stub_fn)(void *user, uint64_t address, uint32_t byte_count, uint32_t module,
                              uint32_t function_index);
HOTFN_API void hotfn_hooks_each_stub(const hotfn_hooks *hooks, hotfn_stub_fn visit, void *user);

#ifdef __cplusplus
}
#endif

#endif
