/* SPDX-License-Identifier: MIT */
/*
 * A thread's times, which follow its counts in the same row (live/time_memory.h has what readers
 * see of them):
 *
 *   hfn_time_state    in the place of a hfn_time_thread
 *   hfn_time_cell     for each slot
 *   the log           the open-call stack, outermost call first.  An unused entry precedes it, so
 *                     that there is an entry before that of each call
 *   the skips         sampled only, a u32 for each slot: how many calls are skipped before the next
 *                     one is timed.  Stubs count them down, so they lie close together
 *   the gaps          sampled only, an hfn_time_gap for each slot: the current block of calls
 *   the hints         where in the call tree a call was found the last time
 */
#ifndef HFN_LIVE_TIME_ROW_H
#define HFN_LIVE_TIME_ROW_H

#include "live/time_memory.h"

#include <stdbool.h>
#include <stddef.h>

#define HFN_TIME_MOST_SLOTS (UINT32_C(1) << 24)
#define HFN_LOG_CAPACITY 4096u /* deeper calls are timed, but not followed through a longjmp */
#define HFN_HINT_BITS 13u
/* Distribute the hints: hfn_tree_hint. */
#define HFN_HINT_PARENT_FACTOR 0x9e3779b1u
#define HFN_HINT_SLOT_FACTOR 0x85ebca6bu

/* What a stub keeps of a call on the program's own stack.  A call can be ended with this alone,
 * whatever became of the log: on another thread, after other stacks ran, in any order. */
typedef struct hfn_time_frame {
    hfn_stack_word start;     /* sampled: tick; counter: the thread's own time   */
    uint32_t caller;          /* the caller's place: tree node + 1               */
    uint32_t depth;           /* index in the log                                */
    hfn_stack_word call_word; /* HFN_CALL_*                                      */
    hfn_stack_word room;      /* sampled: the number of calls that it represents */
    uintptr_t slot; /* from the stub, with a flag in the upper half (arch/x86/emit_tail_exit.c) */
} hfn_time_frame;
/* The caller's return address follows the frame.  Only in a sampling stub on x86-64 there is a gap
 * before it: 16 bytes times the number in the bits of slot from HFN_FRAME_APART_SHIFT on. */
#define HFN_FRAME_APART_SHIFT 24
#define HFN_TIME_FRAME_BYTES (32 + sizeof(uintptr_t))

/* A call in one word, so that it is stored at once: its slot, some bits, and its tree node + 1 (0:
 * none) from HFN_CALL_NODE_SHIFT on. */
#define HFN_CALL_SLOT UINT32_C(0xffffff)
#define HFN_CALL_UNTIMED UINT32_C(0x4000000) /* only counted                       */
#define HFN_CALL_SESSION_SHIFT 28
#define HFN_CALL_SESSION (UINT32_C(15) << HFN_CALL_SESSION_SHIFT) /* of the session's number */
#define HFN_CALL_NODE_SHIFT 32

/* The same call in the log. */
typedef struct hfn_open_call {
    uint64_t frame; /* address of its hfn_time_frame, compared and never followed */
    uint64_t start;
    uint64_t interval; /* sampled: the number of calls that it represents */
    uint64_t call_word;
} hfn_open_call;

/* The current block of calls of a sampled function (counters/timing/sample_mode.c). */
typedef struct hfn_time_gap {
    uint32_t interval; /* calls of the block; 0: none has begun */
    uint32_t after;    /* those after the timed one             */
} hfn_time_gap;

#define HFN_SAMPLE_BEGIN 16u /* the interval until a budget has chosen one */

/* The engine's view of a thread's hfn_time_thread. */
typedef struct hfn_time_state {
    uint64_t hook_ticks; /* the cost of hooks; readers replace it by busy_ticks      */
    uint64_t events;
    uint64_t first_tick;
    uint64_t last_tick; /* of the latest event                                       */
    uint32_t root;
    uint32_t depth;
    uint32_t node;                  /* the current place: tree node + 1              */
    uint32_t started;               /* number of calls of the log that have a start  */
    uint64_t timed;                 /* sampled: timed calls that ended               */
    uint64_t epoch;                 /* sampled: a forked child's calls begin here    */
    uint32_t chunk_next, chunk_end; /* free tree nodes, as indices                   */
    uint32_t thread;                /* index of its cell + 1; 0: of the discard row  */
    uint32_t single_nodes;          /* 1: tree nodes are taken one by one (around_fork.c)     */
    uint64_t random;
    uint64_t alloc_frame; /* of the outermost open call of an allocator; 0: none     */
    uint64_t alloc_depth; /* and its index in the log                                */
    uint64_t exec_tick;   /* when the process executed another program; 0: it did not */
    /* Where the thread waits: counters/timing/waiting.c. */
    uint64_t cpu_ns;        /* its processor time when that was read last             */
    uint64_t cpu_tick;      /* the latest tick then; 0: never read                    */
    int64_t waited_ticks;   /* waiting without a place; below 0: ticks that are still due */
    uint64_t longest_ticks; /* of the intervals between two events since then         */
    uint64_t longest_node;  /* and its place                                          */
    uint64_t open_frames; /* core only: frames of stubs that calls of this row have put on stacks */
    uint64_t spare[12];
} hfn_time_state;
_Static_assert(sizeof(hfn_time_state) == sizeof(hfn_time_thread), "one shape");
_Static_assert(offsetof(hfn_time_state, depth) == offsetof(hfn_time_thread, depth), "one shape");
_Static_assert(sizeof(hfn_time_cell) == 64 && sizeof(hfn_time_frame) == HFN_TIME_FRAME_BYTES &&
                   sizeof(hfn_time_gap) == 8,
               "stubs and readers rely on these sizes");

/* Offsets from the state in a row for `slots` slots. */
static inline uint64_t hfn_time_log_at(uint64_t slots)
{
    return sizeof(hfn_time_state) + slots * sizeof(hfn_time_cell) + sizeof(hfn_open_call);
}

static inline uint64_t hfn_time_skips_at(uint64_t slots)
{
    return hfn_time_log_at(slots) + HFN_LOG_CAPACITY * sizeof(hfn_open_call);
}

static inline uint64_t hfn_time_gaps_at(uint64_t slots)
{
    return (hfn_time_skips_at(slots) + slots * sizeof(uint32_t) + 7) & ~UINT64_C(7);
}

static inline uint64_t hfn_time_hints_at(uint64_t slots)
{
    return hfn_time_gaps_at(slots) + slots * sizeof(hfn_time_gap);
}

static inline uint64_t hfn_time_row_bytes(uint64_t slots)
{
    return (hfn_time_hints_at(slots) + (sizeof(uint32_t) << HFN_HINT_BITS) + 63) & ~UINT64_C(63);
}

/* A record's memory for times; what is not kept is NULL. */
typedef struct hfn_time_memory {
    hfn_time_header *header;
    uint32_t thread_at; /* from a row's begin to its hfn_time_thread                 */
    uint32_t log_at, skips_at, gaps_at, hints_at; /* from there                         */
    hfn_time_node *nodes;
    hotfn_alloc_cell *allocs;
    uint64_t *histograms;
    hfn_slow_call *slow;
    hfn_time_event *events;
    const uint32_t *means; /* by slot: minimum of the sampling interval; 0: HFN_SAMPLE_BEGIN */
    const uint64_t *tick;  /* the tick clock; NULL: there is none                            */
} hfn_time_memory;

#endif
