/* SPDX-License-Identifier: MIT */
/* What a timed program writes besides its counts, in the live record.  Memory holds ticks of the
 * clock named in the header.  Each word has one writer, the thread that owns it, unless the comment
 * names another one. */
#ifndef HFN_LIVE_TIME_MEMORY_H
#define HFN_LIVE_TIME_MEMORY_H

#include <hotfn/lowlevel/timing.h>
#include <stdint.h>

/* The meaning of the words below.  A record of another version is read without its times
 * (hotfn_record_time_info.note). */
#define HFN_TIMES_VERSION 4u

/* One for a record; 256 bytes. */
typedef struct hfn_time_header {
    uint32_t flags; /* HOTFN_TIMING_*                                                  */
    uint32_t clock; /* HOTFN_CLOCK_*                                                   */
    uint64_t ticks_per_second;
    uint64_t start_ticks; /* the clock at the record's start_ns                        */
    uint64_t resolution_ticks;
    /* Costs that were measured at the start, in 1/256 ticks. */
    uint32_t cost_inside_ticks;  /* of a timed call, in its own time; counter: subtracted */
    uint32_t cost_outside_ticks; /* and in its caller's; counter: subtracted; ticks: both  */
    uint32_t count_cost_ticks;   /* of a call that is counted only                        */
    uint32_t sample_mean;
    uint64_t slow_ticks;
    /* Atomic adds increase the used counts, also beyond the capacity: the rest is merged or lost.
     */
    uint32_t node_capacity, nodes_used;
    uint32_t histogram_capacity, histograms_used;
    uint32_t slow_capacity, slow_used;
    uint32_t event_capacity;      /* of each thread's ring; a power of two                 */
    uint32_t row_bytes;           /* from one time row to the next                         */
    uint32_t cells_at;            /* first cell in a row                                   */
    uint32_t nodes_merged;        /* entries of calls that found no node of their own      */
    uint32_t abandoned_exits;     /* frames that longjmp or the like has left              */
    uint32_t clock_went_back;     /* events that are earlier than the one before them      */
    uint32_t version;             /* HFN_TIMES_VERSION of the writer                       */
    uint32_t ticker;              /* HOTFN_TICKER_*                                        */
    uint64_t clock_stopped_ticks; /* when a process first disabled the clock for itself: its calls
                                     were counted only from then on; 0: none did       */
    uint64_t tick_ticks;    /* tick clock: mean interval; 0: the counter is read at both ends */
    uint64_t ticker_cpu_ns; /* processor time of the ticker's threads                  */
    uint64_t tick_sum;      /* of its intervals, and of their squares >> 10            */
    uint64_t tick_squares;
    uint64_t coarse_ticks;          /* in intervals that were several times as long as the mean */
    uint64_t missing_ticks;         /* in intervals in which the ticker did not run            */
    uint64_t waiting_stopped_ticks; /* when a process first could no more read its processor time:
                                       from then on its times include waiting; 0: none   */
    uint32_t call_stack_bytes;      /* that a timed call uses until it returns; 0: not known      */
    uint32_t spare_word;
    uint64_t spare[9];
} hfn_time_header;
_Static_assert(sizeof(hfn_time_header) == 256, "readers of other versions find the version");
#define HFN_TICK_SQUARE_SHIFT 10

/* At the start of a thread's time row; 256 bytes.  The engine keeps words of its own in spare. */
typedef struct hfn_time_thread {
    uint64_t busy_ticks; /* finished: sum of its functions' own times                    */
    uint64_t events;     /* written so far                                               */
    uint64_t first_tick, last_tick;
    uint32_t root;  /* its tree's root node + 1, 0: none yet                              */
    uint32_t depth; /* number of open calls                                               */
    uint64_t spare[27];
} hfn_time_thread;

/* A function in a thread; slot n at cells_at + 64 * n.  One cache line.  In a live record that is
 * not a sample, only the longest call and the histogram are used: the tree has the times. */
typedef struct hfn_time_cell {
    uint64_t total_ticks; /* outermost calls only: recursion counts once       */
    uint64_t self_ticks;  /* on a processor                                     */
    uint64_t timed_calls;
    uint64_t max_ticks;
    uint32_t histogram; /* index + 1 in the pool, 0: none                      */
    uint32_t open;      /* live: used; finished: the calls that had not returned    */
    union {
        struct {
            uint64_t callee_timed; /* timed calls that it made                 */
            uint64_t within_timed; /* its outermost calls, and all timed ones in these  */
        };
        /* HOTFN_TIMING_SAMPLED.  A timed call of length x has the weight w. */
        struct {
            uint64_t weight;  /* sum of w; total_ticks is the sum of w * x            */
            uint64_t squares; /* sum of w * (w - 1) * (x >> HFN_SAMPLE_SHIFT)^2       */
        } sampled;
        /* HOTFN_TIMING_ERRORS: standard errors. */
        struct {
            uint64_t total, self;
        } errors;
    };
    uint64_t waited_ticks; /* finished: in the function itself, not on a processor */
} hfn_time_cell;

#define HFN_SAMPLE_SHIFT 6

/* A place in the call tree of a thread; 64 bytes.  Parents precede their children in a finished
 * record; while live, in any order. */
typedef struct hfn_time_node {
    uint32_t parent; /* node index; its own index: a root, which has no function */
    uint32_t slot;
    uint32_t thread; /* index of the thread's cell                               */
    uint32_t flags;  /* HOTFN_NODE_*; unused without HFN_NODE_USED               */
    uint64_t calls;
    uint64_t total_ticks; /* live: of the place itself, without those below; counter: signed;
                             with waiting                                        */
    uint64_t timed_calls;
    uint32_t first_child, next_sibling; /* live: node index + 1                  */
    uint32_t depth;                     /* live: below the root                  */
    uint32_t reserved;
    uint64_t waited_ticks; /* of the place's own time: not on a processor        */
} hfn_time_node;
#define HFN_NODE_USED 2u /* live: it is complete */

/* A slow call, in a ring; written when it ends.  64 bytes. */
typedef struct hfn_slow_call {
    uint64_t sequence; /* 1, 2, ...: written last; 0: none or being written */
    uint64_t start_ticks, ticks;
    uint32_t node; /* its place, if there is a tree; else UINT32_MAX    */
    uint32_t slot, thread;
    uint32_t reserved;
    uint64_t spare[3];
} hfn_slow_call;

/* An entry or exit, in its thread's ring. */
typedef struct hfn_time_event {
    uint64_t ticks;
    uint32_t slot;
    uint32_t kind; /* 1 entry, 2 exit, 0 none */
} hfn_time_event;

#endif
