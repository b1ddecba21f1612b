/* SPDX-License-Identifier: MIT */
/*
 * The part of the timing engine that all threads share, and the place of a thread's state in its
 * row.
 *
 * Each of the three modes has a file.  Two of them keep time in the call tree (places.h): by a
 * tick clock (tick_mode.c), or by the processor's counter (counter_mode.c).  The third one times a
 * sample of each function's calls (sample_mode.c).  All three use the same open-call stack
 * (open_calls.h).
 */
#ifndef HFN_COUNTERS_ENGINE_H
#define HFN_COUNTERS_ENGINE_H

#include "base/compiler.h"
#include "live/time_row.h"

/* A clock that must not be read: the process has disabled the counter for itself.  Calls are
 * counted only, and open calls end at their thread's latest event. */
#define HFN_CLOCK_STOPPED 0u

#define HFN_ALWAYS_INLINE inline __attribute__((always_inline))
#define HFN_NOINLINE __attribute__((noinline))
/* Orders stores as a signal handler of the same thread sees them. */
#define HFN_SIGNAL_BARRIER() __asm__ volatile("" ::: "memory")

/* Written before the first timed hook is installed. */
typedef struct hfn_time_engine {
    uint32_t thread_at, log_at;
    uint32_t clock;
    uint32_t flags;       /* HOTFN_TIMING_*                                        */
    const uint64_t *tick; /* the tick clock; NULL: `clock` is read                 */
    uint32_t session;     /* HFN_CALL_SESSION bits of hfn_time_frame.call_word     */
    uint32_t hints_at;    /* offset from the state                                 */
    hfn_time_node *nodes;
    hfn_time_header *header;    /* NULL: nothing is timed                          */
    uint32_t skips_at, gaps_at; /* offsets from the state                          */
    uint32_t sample_interval;   /* sampled: one call of so many is timed           */
    uint32_t enter_cost; /* counter: ticks that a hook adds to the caller's own time, subtracted */
    uint32_t exit_cost;  /* counter: ticks that it adds to the function's own time, subtracted   */
    uint32_t is_off;     /* calls that begin or end are not timed           */
    uint64_t slow_ticks; /* UINT64_MAX: no slow calls are kept              */
    uint64_t *histograms;
    hfn_slow_call *slow;
    hfn_time_event *events;
    hotfn_alloc_cell *allocs; /* by node; NULL: memory is not kept                 */
    const uint32_t *means;    /* sampled: by slot, the launcher may change them    */
    uint32_t event_mask;
    uint32_t waiting_ticks; /* between two readings of a thread's processor time     */
    uint64_t cpu_rate;      /* ticks in HFN_CPU_RATE_NS; 0: processor time is not read */
    uint8_t *discard;       /* core only: hfn_row_state.discard */
} hfn_time_engine;

#define HFN_CPU_RATE_SHIFT 20
#define HFN_CPU_RATE_NS (UINT64_C(1) << HFN_CPU_RATE_SHIFT)

/* The depth of the discard row: several threads may use it at once, so nothing begins there. */
#define HFN_DEPTH_CLOSED UINT32_C(0x80000000)

extern hfn_time_engine hfn_time;

/* In assembly, one file for each CPU.  Makes a stub's frame and calls both probes around a body
 * that only returns, `calls` times, to measure the cost; enter NULL: the same without probes. */
HFN_SYSTEM_V void hfn_time_probe(uint64_t slot, void (*enter)(void), void (*exit)(void),
                                 uint64_t calls);

/* The thread begins to use the row; thread: index of its cell + 1. */
void hfn_time_begin_row(uint8_t *row, uint32_t thread);
/* Copy the clock, the place and the open calls of row `from` to row `to`. */
void hfn_time_move(uint8_t *to, const uint8_t *from);
/* The row belongs to a forked child: sampled calls that began before the fork are timed only from
 * now on. */
void hfn_time_begin_child(uint8_t *row);
/* Add from's cells to those of `to`, for the first `slots` slots. */
void hfn_time_add_row(uint8_t *to, const uint8_t *from, uint32_t slots);
/* All open calls of the row end at this tick.  cpu_ns: its thread's processor time, 0: unknown. */
void hfn_time_end_row(uint8_t *row, uint64_t now, uint64_t cpu_ns);
/* The call with the stub's frame at `frame` ends without its exit probe; 0: the innermost one. */
void hfn_time_leave(uint64_t frame);
/* The clock; where it is stopped, the thread's last reading. */
uint64_t hfn_time_now(void);

/* The personality of stubs (personality.c): an exception ends the calls that it passes. */
int hfn_time_personality(int version, int actions, uint64_t exception_class, void *exception,
                         void *context);

static inline bool hfn_time_is_on(void)
{
    return hfn_time.header && !hfn_time.is_off;
}

static inline hfn_time_state *hfn_time_state_of(uint8_t *row)
{
    return (hfn_time_state *)(void *)(row + hfn_time.thread_at);
}

static inline hfn_time_cell *hfn_time_cell_of(hfn_time_state *t, uint32_t slot)
{
    return (hfn_time_cell *)(void *)(t + 1) + slot;
}

static inline uint32_t *hfn_time_skip_of(hfn_time_state *t, uint32_t slot)
{
    return (uint32_t *)(void *)((uint8_t *)t + hfn_time.skips_at) + slot;
}

static inline hfn_time_gap *hfn_time_gap_of(hfn_time_state *t, uint32_t slot)
{
    return (hfn_time_gap *)(void *)((uint8_t *)t + hfn_time.gaps_at) + slot;
}

/* The core counts the frames of stubs that are on stacks, since their code must stay mapped: the
 * sum over the rows of the process is 0 if there is none.  A frame that is left without an exit
 * probe (longjmp) stays counted. */
#ifdef HFN_CORE
extern uint64_t hfn_core_frames; /* of threads without a row */

static HFN_ALWAYS_INLINE void hfn_count_frames(uint8_t *row, int64_t change)
{
    if (row == hfn_time.discard) {
        __atomic_fetch_add(&hfn_core_frames, (uint64_t)change, __ATOMIC_RELAXED);
    } else if (row) { /* one instruction, as a signal handler of the thread sees it */
        __asm__ volatile("addq %1, %0" : "+m"(hfn_time_state_of(row)->open_frames) : "er"(change));
    }
}
#else
static HFN_ALWAYS_INLINE void hfn_count_frames(uint8_t *row, int64_t change)
{
    (void)row, (void)change;
}
#endif

static inline uint32_t hfn_call_slot(uint64_t call_word)
{
    return (uint32_t)call_word & HFN_CALL_SLOT;
}

static inline uint32_t hfn_call_node(uint64_t call_word)
{
    return (uint32_t)(call_word >> HFN_CALL_NODE_SHIFT);
}

/* The calling thread's state if a call may begin in it. */
static HFN_ALWAYS_INLINE hfn_time_state *hfn_state_for_entry(uint8_t *row)
{
    if (HFN_UNLIKELY(!row || hfn_time.clock == HFN_CLOCK_STOPPED ||
                     hfn_time_state_of(row)->depth >= HFN_DEPTH_CLOSED)) {
        return NULL;
    }
    return hfn_time_state_of(row);
}

/* The same for the end of a call; NULL also if it was not timed, or not by this session. */
static HFN_ALWAYS_INLINE hfn_time_state *hfn_state_for_exit(uint8_t *row, uint64_t call_word)
{
    if (HFN_UNLIKELY(!row || hfn_time.is_off ||
                     ((uint32_t)call_word & (HFN_CALL_UNTIMED | HFN_CALL_SESSION)) !=
                         hfn_time.session)) {
        return NULL;
    }
    return hfn_time_state_of(row);
}

#endif
