/* SPDX-License-Identifier: MIT */
/* A thread's times, behind its counts in the same row (hotfn/timing.h has what readers see of them):
 *
 *   hfn_time_thread, in whose spare words the engine keeps hfn_time_state
 *   a hfn_time_cell a slot
 *   the log: the calls that are open, outermost first, and one that is none in front of them, so that each has
 *     one further out
 *   the suspended: open calls that were not on the way to what ran later
 *   the skips: sampled only, a u32 a slot: how many calls go by untimed before the next one is timed.  Stubs
 *     count them down, so they stand close together
 *   the gaps: sampled only, an hfn_time_gap a slot: the block of calls that runs
 *   the hints: where in the tree a call was found the last time
 *   one more cell, of calls by which the engine learns what a timed call costs
 *
 * Cells go by number: slot + 1; number 0 is a cell in the header, for what runs outside of all timed
 * calls.  Numbers mean the same in every row, so a call may begin in one row and end in another. */
#ifndef HFN_COUNTERS_TIME_ROW_H
#define HFN_COUNTERS_TIME_ROW_H

#include "live/time_memory.h"

#include <stdbool.h>
#include <stddef.h>

#define HFN_TIME_MOST_SLOTS (UINT32_C(1) << 24)
#define HFN_LOG_CAPACITY 4096u /* deeper calls are timed, but not followed through a longjmp */
#define HFN_SUSPENDED_CAPACITY 256u
#define HFN_HINT_BITS 13u
#define HFN_PROBE_CALLS 64u /* that a thread makes to learn what they cost, each time ... */
#define HFN_PROBE_FEW 16u   /* ... more than as many as these */
#define HFN_ENDS_TO_BELIEVE                                                                        \
    64u /* that looked at themselves: fewer tell nothing of what the others took */

/* What a stub keeps of a call on the thread's own stack.  A call can be ended with this alone,
 * whatever became of the log: on another thread, after other stacks ran, in any order. */
typedef struct hfn_time_frame {
    uint64_t start;  /* tick                                 */
    uint32_t caller; /* number of the cell that ran before   */
    uint32_t depth;  /* its place in the log                 */
    uint64_t how;    /* HFN_CALL_*                           */
    uint64_t room;   /* sampled: how many calls it stands for */
    uintptr_t
        slot; /* written by the stub, which keeps a flag in the upper half (arch/x86/emit_tail_exit.c);
                      * above it lies the caller's return address, in a sample's stub on x86-64 as many
                      * times 16 bytes apart as the bits from HFN_FRAME_APART_SHIFT on say */
} hfn_time_frame;
#define HFN_FRAME_APART_SHIFT 24
#define HFN_TIME_FRAME_BYTES (32 + sizeof(uintptr_t))

/* What is to be known of a call in one word, as it is stored at once: its slot, some bits, and from
 * HFN_CALL_NODE_SHIFT on its tree node + 1 (0: none). */
#define HFN_CALL_SLOT UINT32_C(0xffffff)
#define HFN_CALL_NESTED                                                                            \
    UINT32_C(0x1000000) /* another call of the same function is open further out */
#define HFN_CALL_MERGED                                                                            \
    UINT32_C(0x2000000) /* its node is its caller's                              */
#define HFN_CALL_UNTIMED                                                                           \
    UINT32_C(0x4000000) /* nothing was begun                                     */
#define HFN_CALL_ENDED                                                                             \
    UINT32_C(0x8000000)           /* in the log: an exception has passed it                */
#define HFN_CALL_SESSION_SHIFT 28 /* tick clock: four bits of the session's number */
#define HFN_CALL_NODE_SHIFT 32

/* The same call in the log. */
typedef struct hfn_open_call {
    uint64_t frame; /* address of its hfn_time_frame, compared and never followed */
    uint64_t start;
    union {
        uint64_t timed_before; /* hfn_time_state's timed, when it began   */
        uint64_t interval;     /* sampled: the number of calls it represents */
    };
    uint64_t how;
} hfn_open_call;

/* In suspended. */
typedef struct hfn_waiting_call {
    hfn_open_call call;
    uint64_t end;          /* when it was last seen; it may have been left then */
    uint64_t timed_within; /* how much that word had grown in it by then        */
} hfn_waiting_call;

/* Of a function that is sampled: the block of calls that runs (counters/timing/sample_mode.c). */
typedef struct hfn_time_gap {
    uint32_t interval; /* calls of the block; 0: none has begun                     */
    uint32_t after;    /* those after the one that is timed                         */
} hfn_time_gap;

#define HFN_SAMPLE_BEGIN 16u /* the interval until a budget has chosen one */

/* Words of one thread, over a hfn_time_thread. */
typedef struct hfn_time_state {
    uint64_t hook_ticks; /* tick clock: ticks that came while a hook ran; else 0.  Who reads puts
                            busy_ticks here */
    uint64_t events;
    uint64_t first_tick;
    uint64_t last_tick; /* of its latest event: what ran since is `current`'s own time  */
    uint32_t root;
    uint32_t depth;
    /* spare[0] */
    uint32_t current; /* number of the cell whose call runs                             */
    uint32_t suspended_count;
    uint64_t timed; /* timed calls that ended */
    uint64_t floor; /* calls that began before are timed from here: a forked child's  */
    uint32_t chunk_next, chunk_end; /* tree nodes at hand, index                        */
    uint32_t thread; /* index of its cell + 1; 0: a row that is nobody's               */
    uint32_t node;   /* the current call's tree node + 1                               */
    uint64_t suspended_low,
        suspended_high; /* all frames in suspended lie in [low, high]           */
    uint64_t random;
    uint64_t alloc_frame; /* of the outermost call of an allocator that is open; 0: none */
    uint64_t alloc_depth; /* and its place in the log                                    */
    uint32_t started; /* tick clock: so many calls of the log have a start; a tick came in them */
    uint32_t reserved;
    uint64_t exec_tick; /* when the process executed another program; 0: it did not    */
    uint64_t spare[7];
    hfn_time_cell outside; /* number 0 */
} hfn_time_state;
_Static_assert(sizeof(hfn_time_state) == sizeof(hfn_time_thread), "one shape");
_Static_assert(offsetof(hfn_time_state, depth) == offsetof(hfn_time_thread, depth), "one shape");
_Static_assert(sizeof(hfn_time_cell) == 64 && sizeof(hfn_time_frame) == HFN_TIME_FRAME_BYTES &&
                   sizeof(hfn_time_gap) == 8,
               "what stubs and cell numbers count with");

/* Where things are, from the state on. */
static inline uint64_t hfn_time_log_at(uint64_t slots)
{
    return sizeof(hfn_time_state) + slots * sizeof(hfn_time_cell) + sizeof(hfn_open_call);
}

static inline uint64_t hfn_time_skips_at(uint64_t slots)
{
    return hfn_time_log_at(slots) + HFN_LOG_CAPACITY * sizeof(hfn_open_call) +
           HFN_SUSPENDED_CAPACITY * sizeof(hfn_waiting_call);
}

static inline uint64_t hfn_time_gaps_at(uint64_t slots)
{
    return (hfn_time_skips_at(slots) + slots * sizeof(uint32_t) + 7) & ~UINT64_C(7);
}

static inline uint64_t hfn_time_hints_at(uint64_t slots)
{
    return hfn_time_gaps_at(slots) + slots * sizeof(hfn_time_gap);
}

/* Of the engine's own calls, whose cell stands behind all that. */
static inline uint64_t hfn_time_own_slot(uint64_t hints_at)
{
    uint64_t end = hints_at + (sizeof(uint64_t) << HFN_HINT_BITS);

    return (end - offsetof(hfn_time_state, outside) - 1) / sizeof(hfn_time_cell);
}

static inline uint64_t hfn_time_row_bytes(uint64_t slots)
{
    return offsetof(hfn_time_state, outside) +
           (hfn_time_own_slot(hfn_time_hints_at(slots)) + 2) * sizeof(hfn_time_cell);
}

/* A record's memory for times; what is not kept is NULL. */
typedef struct hfn_time_memory {
    hfn_time_header *header;
    uint32_t thread_at; /* from a row's begin to its hfn_time_thread */
    uint32_t log_at;    /* and from there to the log                   */
    uint32_t skips_at;  /* and to the skips                            */
    uint32_t gaps_at;   /* and to the gaps                             */
    uint32_t hints_at;  /* and to the hints                            */
    hfn_time_node *nodes;
    hotfn_alloc_cell *allocs;
    uint64_t *histograms;
    hfn_slow_call *slow;
    hfn_time_event *events;
    const uint32_t *means; /* by slot: one call in so many is timed at most; 0: it begins slowly */
    const uint64_t *tick;  /* the tick clock; NULL: there is none */
} hfn_time_memory;

#endif
