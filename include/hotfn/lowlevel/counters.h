/* SPDX-License-Identifier: MIT */
/* Counters: each thread owns a row of 64-bit slots and is its only writer, so that no call is lost
 * and no lock is taken. */
#ifndef HOTFN_COUNTERS_H
#define HOTFN_COUNTERS_H

#include <hotfn/lowlevel/hooks.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hotfn_counters hotfn_counters;

/*
 * Create the counters of this process, in anonymous memory.  Only one set exists at a time, because
 * the row pointer is one thread-local variable.
 *
 * out              receives a set that the caller owns; untouched on failure.
 * slot_capacity    slots of a row.
 * thread_capacity  rows [4096; fewer if address space is scarce].
 *
 * HOTFN_OK, HOTFN_E_NO_MEMORY, HOTFN_E_STATE (another set exists), HOTFN_E_OPTION (slot_capacity is
 * 0), HOTFN_E_UNSUPPORTED (stubs cannot reach the row pointer).  One thread at a time.  Since 0.1.
 */
HOTFN_API hotfn_status hotfn_counters_create(hotfn_counters **out, uint32_t slot_capacity,
                                             uint32_t thread_capacity, const hotfn_env *env,
                                             hotfn_error *err);
/* Destroy the set once no hook counts any more.  Row pointers of threads are reset; used rows are
 * emptied and stay mapped, because a thread may still run a stub.  NULL is fine.  One thread at a
 * time.  Since 0.1. */
HOTFN_API void hotfn_counters_destroy(hotfn_counters *counters);

/*
 * Get how stubs reach the row of the calling thread, for hotfn_hooks_create.  The code addresses
 * stay valid for the life of the process.  HOTFN_OK, HOTFN_E_OPTION.  Any thread.  Since 0.1.
 *
 * Contract of slow_path: it sets the thread's row pointer to an address other than 0 and returns to
 * the stub.  It runs on the thread's stack, makes only raw system calls, takes no lock, and is safe
 * in a signal handler.  On x86-64 a stub calls it; it preserves every register, the flags and the
 * vector state.  On ARM64 a stub branches to it with the return address in x17; it preserves all
 * registers but x16 and x17.
 */
HOTFN_API hotfn_status hotfn_counters_get_access(const hotfn_counters *counters,
                                                 hotfn_row_access *out);

/* Store in totals[n] the calls counted in slot first_slot + n, summed over all rows; totals has
 * slot_count words.  Calls in progress may or may not be included.  HOTFN_OK, HOTFN_E_OPTION (slots
 * beyond slot_capacity).  Any thread; lock-free.  Since 0.1. */
HOTFN_API hotfn_status hotfn_counters_sum(const hotfn_counters *counters, uint32_t first_slot,
                                          uint32_t slot_count, uint64_t *totals);

/* Stop counting in the calling thread until hotfn_counters_resume gets the returned token in the
 * same thread.  If the set was replaced or the process forked in between, the thread starts with a
 * fresh row.  The token may be NULL and owns nothing.  Pairs nest; neither call fails.  Any thread.
 * Since 0.1. */
HOTFN_API void *hotfn_counters_pause(void);
HOTFN_API void hotfn_counters_resume(void *token);

/* Call prepare before fork() and parent or child after it, all in the forking thread.  In between
 * the thread counts in a private row: the parent adds that row to its own, the child adds what it
 * counted itself to a fresh row under its own process id.  No call fails; calls made in between may
 * be lost if there is no memory for the private row or the kernel cannot wipe it in the child.
 * NULL is fine.  Since 0.1. */
HOTFN_API void hotfn_counters_fork_prepare(hotfn_counters *counters);
HOTFN_API void hotfn_counters_fork_parent(hotfn_counters *counters);
HOTFN_API void hotfn_counters_fork_child(hotfn_counters *counters);

#ifdef __cplusplus
}
#endif

#endif
