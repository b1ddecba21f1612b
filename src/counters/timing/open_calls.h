/* SPDX-License-Identifier: MIT */
/*
 * HOT PATH: the open-call stack of a thread, outermost call first.  An entry has the address of the
 * stub's frame, which is compared and never followed: its memory may be gone.
 *
 *     (none) --enter--> open --exit of the innermost call--> (none)
 *                        |
 *                        |  a new frame lies above its frame (longjmp, another stack),
 *                        |  a call further out ends, or an exception passes it
 *                        v
 *                       left: removed from the stack.  If the call ends after all, its own frame
 *                       on the program's stack has everything that is needed.
 *
 * Calls deeper than HFN_LOG_CAPACITY have no entry, only a depth.  A free entry has the frame 0.  A
 * signal handler may make timed calls between any two instructions; each store therefore leaves a
 * state that a nested pair of enter and exit restores.
 */
#ifndef HFN_COUNTERS_OPEN_CALLS_H
#define HFN_COUNTERS_OPEN_CALLS_H

#include "counters/timing/engine.h"

/* The frame of an entry that an exception has passed: it was not abandoned. */
#define HFN_LEFT_FRAME 1u

static inline hfn_open_call *hfn_open_calls_of(hfn_time_state *t)
{
    return (hfn_open_call *)(void *)((uint8_t *)t + hfn_time.log_at);
}

static inline uint32_t hfn_open_calls_count(const hfn_time_state *t)
{
    return t->depth < HFN_LOG_CAPACITY ? t->depth : HFN_LOG_CAPACITY;
}

/* Remove the entries from `depth` on. */
HFN_KEEPS_REGISTERS void hfn_open_calls_cut(hfn_time_state *t, uint32_t depth);
/* Remove the calls whose frames lie below a new one, and make the innermost remaining call's place
 * the current one. */
HFN_KEEPS_REGISTERS void hfn_open_calls_remove_left(hfn_time_state *t, uint64_t frame);
/* End a call that is not the innermost one: remove it and all calls inside it, if it has an
 * entry. */
HFN_KEEPS_REGISTERS void hfn_open_calls_remove(hfn_time_state *t, const hfn_time_frame *f);
/* The index plus 1 of the entry with this frame, or 0 if there is none.  frame 0: the entry of the
 * innermost call. */
uint32_t hfn_open_calls_find(hfn_time_state *t, uint64_t frame);

/* Remove the calls that were left, if there are any, and return the depth of a new call with this
 * frame. */
static HFN_ALWAYS_INLINE uint32_t hfn_open_calls_prepare(hfn_time_state *t, uint64_t frame)
{
    if (HFN_LIKELY(t->depth - 1 < HFN_LOG_CAPACITY) &&
        HFN_UNLIKELY(hfn_open_calls_of(t)[t->depth - 1].frame - 1 < frame)) {
        hfn_open_calls_remove_left(HFN_PASS(t), HFN_PASS(frame));
    }
    return t->depth;
}

/* Reserve the entry at `depth`; until then a handler's calls may use it.  NULL: there is none. */
static HFN_ALWAYS_INLINE hfn_open_call *hfn_open_calls_push(hfn_time_state *t, uint32_t depth)
{
    t->depth = depth + 1;
    HFN_SIGNAL_BARRIER();
    return HFN_LIKELY(depth < HFN_LOG_CAPACITY) ? &hfn_open_calls_of(t)[depth] : NULL;
}

static HFN_ALWAYS_INLINE bool hfn_open_calls_is_innermost(hfn_time_state *t,
                                                          const hfn_time_frame *f)
{
    return HFN_LIKELY(f->depth < HFN_LOG_CAPACITY && t->depth == f->depth + 1 &&
                      hfn_open_calls_of(t)[f->depth].frame == (uint64_t)(uintptr_t)f);
}

static HFN_ALWAYS_INLINE void hfn_open_calls_pop(hfn_time_state *t, uint32_t depth)
{
    hfn_open_calls_of(t)[depth].frame = 0;
    HFN_SIGNAL_BARRIER(); /* from then on the entry is a handler's */
    t->depth = depth;
}

#endif
