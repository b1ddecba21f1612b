/* SPDX-License-Identifier: MIT */
/* What a timed program writes besides its counts, in the live record.  Memory holds ticks of the clock
 * named in the header.  Each word has one writer, the thread that owns it, unless said otherwise. */
#ifndef HFN_LIVE_TIME_MEMORY_H
#define HFN_LIVE_TIME_MEMORY_H

#include <hotfn/lowlevel/timing.h>
#include <stdint.h>

/* What the words below mean.  A record of another version is read without its times
 * (hotfn_record_time_info.note). */
#define HFN_TIMES_VERSION 2u

/* One a record; 256 bytes. */
typedef struct hfn_time_header {
    uint32_t flags; /* HOTFN_TIMING_*                                                       */
    uint32_t clock; /* HOTFN_CLOCK_*                                                        */
    uint64_t ticks_per_second;
    uint64_t start_ticks; /* the clock at the record's start_ns                          */
    uint64_t resolution_ticks;
    uint32_t cost_inside_ticks;  /* of a timed call, seen as its own time; x 1/256          */
    uint32_t cost_outside_ticks; /* and as its caller's; x 1/256; sampled, when read: in the mean */
    uint32_t count_cost_ticks;   /* of a call that is counted only; x 1/256                 */
    uint32_t sample_mean;
    uint64_t slow_ticks;
    uint32_t node_capacity, nodes_used;           /* used counts grow by atomic adds, and  */
    uint32_t histogram_capacity, histograms_used; /* may pass the capacity: then some was  */
    uint32_t slow_capacity, slow_used;            /* merged or overwritten                 */
    uint32_t event_capacity;      /* of each thread's ring; a power of two                     */
    uint32_t row_bytes;           /* from one time row to the next                             */
    uint32_t cells_at;            /* first cell in a row                                       */
    uint32_t nodes_merged;        /* calls' entries that found no node of their own            */
    uint32_t abandoned_exits;     /* frames left by longjmp or the like                        */
    uint32_t clock_went_back;     /* exits whose clock was before their entry's                */
    uint32_t version;             /* HFN_TIMES_VERSION of who made it                        */
    uint32_t probe_ticks;         /* per probed call, of what is none of its cost; x 1/256     */
    uint64_t clock_stopped_ticks; /* when a process first forbade itself the clock: its calls were
                                     counted only from then on; 0: none did                 */
    uint64_t probed_calls; /* flat: of those that threads made as they ran, to learn what such */
    uint64_t probed_ticks, probed_inside_ticks; /* a call costs then; added atomically         */
    uint64_t seen_ends,
        seen_ticks;       /* not flat, nor sampled: ends of calls that looked at what they took  */
    int64_t unseen_ticks; /* at the start a call cost so much more than its two ends saw,        */
    uint64_t
        start_seen_ticks; /* which was this (0: they do not look); x 1/256                       */
    uint64_t tick_ticks; /* tick clock: mean interval; 0: the clock is read at each end of a call */
    uint64_t ticker_cpu_ns; /* processor time of the ticker's threads                   */
    uint64_t tick_sum;      /* of its intervals, and of their squares >> 10             */
    uint64_t tick_squares;
    uint64_t coarse_ticks;  /* in intervals that were several times as long as the mean */
    uint64_t missing_ticks; /* in intervals in which the ticker did not run             */
    uint32_t ticker;        /* HOTFN_TICKER_*                                           */
    uint32_t reserved;
    uint64_t spare[3];
} hfn_time_header;
#define HFN_TICK_SQUARE_SHIFT 10

/* At the start of a thread's time row; 256 bytes.  The engine may keep words of its own in spare. */
typedef struct hfn_time_thread {
    uint64_t
        busy_ticks; /* sum of its functions' own times, and so of its outermost calls' totals; while
                              live the word is the engine's              */
    uint64_t events; /* written so far                             */
    uint64_t first_tick, last_tick;
    uint32_t root;  /* its tree's root node + 1, 0: none yet      */
    uint32_t depth; /* open calls now                             */
    uint64_t spare[27];
} hfn_time_thread;

/* A function in a thread; slot n at cells_at + 64 * n.  One cache line. */
typedef struct hfn_time_cell {
    uint64_t total_ticks; /* outermost calls only: recursion counts once */
    uint64_t self_ticks;
    uint64_t timed_calls; /* that ended                                  */
    uint64_t min_ticks;   /* plus 1, so that 0 says none                 */
    uint64_t max_ticks;
    uint32_t histogram; /* index + 1 in the pool, 0: none              */
    uint32_t open; /* live: the engine's; finished: of timed_calls, those that had not returned */
    union {
        struct {
            uint64_t callee_timed; /* timed calls from it, recursive ones too           */
            uint64_t within_timed; /* and within its outermost calls, these too; 0: not kept */
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
} hfn_time_cell;

#define HFN_SAMPLE_SHIFT 6

/* A function called from a place in the call tree of a thread; 64 bytes.  Parents stand before their
 * children in a finished record; while live, in any order.  Sampled: a timed call stands for w calls, those
 * that went by untimed before it among them, and calls, total_ticks, within_timed are sums of w times a
 * call's own; timed_calls is a count as ever. */
typedef struct hfn_time_node {
    uint32_t parent; /* node index; its own index: a root, which has no function */
    uint32_t slot;
    uint32_t thread; /* index of the thread's cell                               */
    uint32_t flags;  /* HOTFN_NODE_*; without HFN_NODE_USED it is none         */
    uint64_t calls;
    uint64_t total_ticks; /* live, tick clock: of the place itself, without those below */
    uint64_t timed_calls;
    uint32_t first_child, next_sibling; /* the engine's                           */
    uint64_t
        within_timed; /* sampled: ticks that the two ends of timed calls within took; otherwise the engine's */
    uint64_t spread; /* sampled: sum of w * (w - 1), w being what a timed call stood for; else */
                     /* the engine's                                                           */
} hfn_time_node;
#define HFN_NODE_USED 2u /* in memory: it is whole                                 */

/* A slow call, in a ring; written when it ends.  64 bytes. */
typedef struct hfn_slow_call {
    uint64_t sequence; /* 1, 2, ...: written last; 0: none or being written */
    uint64_t start_ticks, ticks;
    uint32_t node; /* its stack, if there is a tree; else UINT32_MAX    */
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
