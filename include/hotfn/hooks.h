/* SPDX-License-Identifier: MIT */
/* Replace functions of the running process, or decide call by call whether they run.  The
 * functions are judged as for counting: a function that cannot be hooked safely is refused with
 * the reason. */
#ifndef HOTFN_HOOKS_H
#define HOTFN_HOOKS_H

#include <hotfn/env.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hotfn_hooks hotfn_hooks;

/* The address of a function of any type, which the caller converts to and from this one. */
typedef void (*hotfn_code)(void);

/* The process has no other thread, so commit and remove do not stop any. */
#define HOTFN_HOOKS_SINGLE_THREADED 1u
/* Write no unwind information for stubs. */
#define HOTFN_HOOKS_NO_UNWIND 2u
/* Register the unwind information with libgcc (__register_frame); for programs without the agent.
 */
#define HOTFN_HOOKS_REGISTER_UNWIND 4u
/* Patch entries only.  Without this flag, direct calls are redirected to stubs too. */
#define HOTFN_HOOKS_KEEP_CALLS 8u

/* A field left 0 asks for the default in brackets.  Fields are only appended. */
typedef struct hotfn_hook_options {
    uint32_t size;             /* sizeof(hotfn_hook_options)               */
    uint32_t flags;            /* HOTFN_HOOKS_* [none]                     */
    uint64_t near_range_bytes; /* maximum distance of stubs from the module [2 GiB - 64 KiB] */
    uint64_t quiesce_ns;       /* time limit of one attempt to stop all threads [50 ms]      */
} hotfn_hook_options;
#define HOTFN_HOOK_OPTIONS_INIT                                                                    \
    {                                                                                              \
        (uint32_t)sizeof(hotfn_hook_options), 0, 0, 0                                              \
    }

/* How stubs count; hotfn/lowlevel/hooks.h has it. */
struct hotfn_row_access;

/*
 * Create an empty hook set for the running process.
 *
 * out      receives a set that the caller owns; untouched on failure.
 * options  borrowed; NULL means all defaults.
 * access   borrowed; NULL if no hook counts.
 *
 * HOTFN_OK, HOTFN_E_NO_MEMORY, HOTFN_E_OPTION.  Any thread; a set is used by one thread at a time.
 * Since 0.1.
 */
HOTFN_API hotfn_status hotfn_hooks_create(hotfn_hooks **out, const hotfn_hook_options *options,
                                          const struct hotfn_row_access *access,
                                          const hotfn_env *env, hotfn_error *err);

/* A call that is about to run, as a filter sees it; valid until the filter returns. */
typedef struct hotfn_hooked_call hotfn_hooked_call;

/*
 * Decides whether a call runs: 0 returns to the caller at once, with the result that
 * hotfn_hooked_call_set_result stored (without one, the result register keeps its value); any other
 * value runs the function.  Called in the calling thread.  The function's registers are
 * preserved.  It must return normally: no exception and no longjmp leaves it.
 */
typedef int32_t (*hotfn_hook_filter_fn)(void *user, hotfn_hooked_call *call);

/* Get an integer or pointer argument by its position among those; floating-point arguments do not
 * count, except on Windows x64, where each argument has a position, and on i386, where all are on
 * the stack and `index` counts words.  A wrong index reads other memory of the stack.  Only in a
 * filter.  Since 0.1. */
HOTFN_API uint64_t hotfn_hooked_call_get_argument(const hotfn_hooked_call *call, uint32_t index);
/* Set the integer or pointer that a call returns if the filter returns 0.  Only in a filter.
 * Since 0.1. */
HOTFN_API void hotfn_hooked_call_set_result(hotfn_hooked_call *call, uint64_t value);

typedef struct hotfn_replace_options {
    uint32_t size; /* sizeof(hotfn_replace_options) */
    uint32_t reserved;
    const char *cache_folder; /* borrowed; folder where scans are kept for the next start [none] */
} hotfn_replace_options;
#define HOTFN_REPLACE_OPTIONS_INIT                                                                 \
    {                                                                                              \
        (uint32_t)sizeof(hotfn_replace_options), 0, 0                                              \
    }

/*
 * From now on, all calls of the function at `entry` run `replacement`, until the hooks of the set
 * are removed.  The module of the function is scanned when its first function is replaced, and is
 * never unloaded after that.
 *
 * original     receives a function that does what the replaced one did, also after the hooks were
 *              removed; set before the first call can reach `replacement`; untouched on failure.
 * entry        the first instruction of a function of a loaded module.
 * replacement  a function of the same type and calling convention.  It runs in place of the
 *              function: it may call the original any number of times, throw, or jump to it.
 *              Compilers let callers of a function that is not exported keep values in
 *              registers that it does not change; there the replacement must change no more
 *              registers than the original (docs/replace.md).
 *
 * HOTFN_OK; HOTFN_E_NOT_FOUND (no module or no function at entry), HOTFN_E_UNSUPPORTED (it cannot
 * be replaced safely: err has the reason), HOTFN_E_MISMATCH (the module's file was replaced, or its
 * code was changed, for instance by another hook), HOTFN_E_STATE (a thread could not be stopped),
 * HOTFN_E_NO_MEMORY, HOTFN_E_OPTION, and the errors of hotfn_scan_open.  One thread at a time per
 * set.  Since 0.1.
 */
HOTFN_API hotfn_status hotfn_hooks_replace(hotfn_code *original, hotfn_hooks *hooks,
                                           hotfn_code entry, hotfn_code replacement,
                                           const hotfn_replace_options *options, hotfn_error *err);
/*
 * From now on, `filter` decides for each call of the function at `entry` whether it runs.
 *
 * user  kept until the hooks are removed; passed to filter.
 *
 * As hotfn_hooks_replace.  On i386 a function that removes its own arguments from the stack is
 * refused, also if that is not known.  One thread at a time per set.  Since 0.1.
 */
HOTFN_API hotfn_status hotfn_hooks_filter(hotfn_hooks *hooks, hotfn_code entry,
                                          hotfn_hook_filter_fn filter, void *user,
                                          const hotfn_replace_options *options, hotfn_error *err);

/*
 * Remove all hooks and restore the original bytes.  Two things remain: stubs stay mapped, since a
 * thread may still execute one, and tail jumps that end timed calls (hotfn_verdict.tail_target)
 * still go through their stubs, since a timed call may be open; they reach the same function as
 * before.
 *
 * HOTFN_OK; HOTFN_E_STATE (a thread could not be stopped) or HOTFN_E_NO_MEMORY: nothing was
 * removed and the call may be repeated; HOTFN_E_MISMATCH: some patched bytes were changed by
 * other code and were left alone; HOTFN_E_DENIED: some code is no longer writable.  One thread at
 * a time per set.  Since 0.1.
 */
HOTFN_API hotfn_status hotfn_hooks_remove(hotfn_hooks *hooks, hotfn_error *err);
/* Remove the remaining hooks and free the set; NULL is fine.  Stubs stay mapped.  Since 0.1. */
HOTFN_API void hotfn_hooks_destroy(hotfn_hooks *hooks);

#ifdef __cplusplus
}
#endif

#endif
