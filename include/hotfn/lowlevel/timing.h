/* SPDX-License-Identifier: MIT */
/* Timing: what `--mode time` keeps besides the counts, as a record reports it: in nanoseconds,
 * without the cost of hooks. */
#ifndef HOTFN_TIMING_H
#define HOTFN_TIMING_H

#include <hotfn/record.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HOTFN_CLOCK_TSC 1u       /* rdtsc, invariant                     */
#define HOTFN_CLOCK_MONOTONIC 2u /* clock_gettime(CLOCK_MONOTONIC)       */
#define HOTFN_CLOCK_ARM 3u       /* cntvct_el0                           */
#define HOTFN_CLOCK_MERGED                                                                         \
    4u /* a merge's nanoseconds, of any clocks, without the hooks' own cost */

#define HOTFN_CLOCK_TICK 5u /* a word that another thread copies one of these counters to */

/* The thread that copies it. */
#define HOTFN_TICKER_NONE 0u  /* the counter is read at both ends of each call          */
#define HOTFN_TICKER_SPINS 1u /* on a processor that would be idle; it sleeps while none is */
#define HOTFN_TICKER_ONE_PROCESSOR 2u /* sleeps: the target may use only one processor          */
#define HOTFN_TICKER_QUOTA 3u         /* sleeps: a quota limits processor time                  */

/* What is kept; asked for by the parent. */
#define HOTFN_TIMING_TIMES 1u /* calls, total, self, min, max of a function and thread */
#define HOTFN_TIMING_HISTOGRAMS 2u
#define HOTFN_TIMING_TREE 4u     /* a calling-context tree; edges come from it            */
#define HOTFN_TIMING_ALLOC 8u    /* memory by tree node                                   */
#define HOTFN_TIMING_SLOW 16u    /* calls above slow_ticks                                */
#define HOTFN_TIMING_SAMPLED 32u /* sample_mean says how many calls are passed over       */
#define HOTFN_TIMING_EVENTS 64u  /* entries and exits, the latest of each thread          */
#define HOTFN_TIMING_ERRORS                                                                        \
    128u /* merged runs: a cell's callee_timed and within_timed are the standard                   \
                                      errors of its total and self                          */
#define HOTFN_TIMING_SOME_SAMPLED 256u /* merged runs: at least one of them was a sample */
#define HOTFN_TIMING_WAITING 512u      /* waiting is known, and not part of self times     */

/* Log-linear, 32 steps an octave: ticks below 64 have a bucket each, then bucket
 * 32 * (exponent - 5) + (ticks >> (exponent - 5)), exponent that of the highest set bit.  A bucket
 * is a u64, added to by atomic increments unless there is one a thread. */
#define HOTFN_HISTOGRAM_BUCKETS 1280u /* up to 2^44 ticks; the last takes what is above */

#define HOTFN_NODE_MERGED 1u /* also has calls that found no room in the tree */

/* Memory by tree node, in parallel to the nodes. */
typedef struct hotfn_alloc_cell {
    uint64_t allocated_bytes, allocated_blocks;
    uint64_t freed_bytes, freed_blocks;
} hotfn_alloc_cell;

/* ---- What a record has.  "Since 0.1" for all of it. */

/* What the run kept and what it cost. */
typedef struct hotfn_record_time_info {
    uint32_t size;  /* sizeof(hotfn_record_time_info)                    */
    uint32_t flags; /* HOTFN_TIMING_*; 0: the run was not timed          */
    uint32_t clock; /* HOTFN_CLOCK_*                                     */
    uint32_t sample_mean;
    uint64_t ticks_per_second;
    double resolution_ns;
    double cost_inside_ns; /* of a timed call, subtracted from its own time; by ticks 0    */
    double cost_outside_ns;
    double count_cost_ns;
    uint64_t slow_ns;
    uint64_t busy_ns; /* of all threads: the sum of self times      */
    uint32_t edge_count, node_count, slow_count;
    uint32_t nodes_merged; /* entries that found no tree node of their own */
    uint32_t histograms_lost;
    uint32_t abandoned_exits, clock_went_back;
    uint64_t slow_lost; /* slow calls that later ones overwrote       */
    uint64_t event_count, events_lost;
    const char *note;          /* why the record's times are not read (flags is 0 then), or "" */
    uint64_t note_offset;      /* where in its file they stand               */
    uint64_t clock_stopped_ns; /* so long after the record's start a process first forbade itself
                                  the clock, and was counted only from then on; 0: none did */
    uint32_t ticker;           /* HOTFN_TICKER_*; the rest is 0 without one                  */
    uint32_t call_stack_bytes; /* stack that a timed call without stack arguments uses until it
                                  returns; 0: not known                                   */
    uint64_t ticker_cpu_ns;    /* processor time of the ticker, which is not the target's    */
    double tick_ns;            /* mean interval between two ticks                            */
    double tick_error_ns;      /* a time of T ns has a standard error of sqrt(T * tick_error_ns) */
    double coarse_share;       /* share of the run with intervals of at least 16 us          */
    double missing_share;      /* and without ticks for at least 10 ms                       */
    uint64_t waited_ns;        /* HOTFN_TIMING_WAITING: of all threads, not part of busy_ns   */
    uint64_t waiting_stopped_ns; /* so long after the record's start a process first filtered its
                                    system calls, and its times include waiting from then on; 0:
                                    none did */
} hotfn_record_time_info;
#define HOTFN_RECORD_TIME_INFO_INIT                                                                \
    {                                                                                              \
        (uint32_t)sizeof(hotfn_record_time_info), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,  \
            0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0                                         \
    }

#define HOTFN_TIMING_COUNT_ONLY 0u
#define HOTFN_TIMING_FULL 1u
#define HOTFN_TIMING_SAMPLE 2u

/* A sampled function recurses through others, and its total is the most that it can have taken, not
 * an estimate. */
#define HOTFN_ERROR_UNKNOWN UINT64_MAX

/* A function's times.  A call that had not returned when the record ended (exit, _exit, a kill; a
 * live record: now) ends there. */
typedef struct hotfn_record_timing {
    uint32_t size;   /* sizeof(hotfn_record_timing)                        */
    uint32_t timing; /* HOTFN_TIMING_COUNT_ONLY: reason says why           */
    uint64_t timed_calls;
    uint64_t total_ns, self_ns; /* as the calls took; on a processor where that is known */
    /* By ticks and in a sample: one standard error; by the counter: what was subtracted for hooks.
     * By ticks it includes what the hooks of the calls may have shifted, except in merged records.
     * A time of 0 is below what can be resolved: less than its error.  HOTFN_ERROR_UNKNOWN: none.
     */
    uint64_t total_error_ns, self_error_ns;
    uint64_t max_ns;                 /* 0: below what can be resolved                            */
    uint64_t p50_ns, p90_ns, p99_ns; /* 0 without a histogram; where `below` says so, bounds      */
    hotfn_alloc_cell self_alloc, total_alloc;
    const char *reason; /* a stable word, "" if timed in full */
    const char *reason_text;
    uint64_t open_calls; /* of the timed calls: those that had not returned */
    uint32_t below;      /* HOTFN_BELOW_*: the percentile is less than its value */
    uint32_t reserved;
    /* HOTFN_TIMING_WAITING: when the thread was not on a processor, since it waited or others ran.
     * In the function itself, not part of self_ns; and as part of total_ns. */
    uint64_t waited_ns, total_waited_ns;
} hotfn_record_timing;
#define HOTFN_BELOW_P50 1u
#define HOTFN_BELOW_P90 2u
#define HOTFN_BELOW_P99 4u

/* caller called callee; HOTFN_NO_FUNCTION: from outside of any timed function. */
typedef struct hotfn_record_edge {
    uint32_t size;           /* sizeof(hotfn_record_edge) */
    uint32_t caller, callee; /* function indices */
    uint32_t flags;          /* HOTFN_NODE_MERGED: in part from merged nodes */
    uint64_t calls, total_ns;
    hotfn_alloc_cell total_alloc; /* with all below */
} hotfn_record_edge;

#define HOTFN_NO_NODE UINT32_MAX
typedef struct hotfn_record_node {
    uint32_t size;   /* sizeof(hotfn_record_node) */
    uint32_t parent; /* a smaller index; HOTFN_NO_NODE: called from outside */
    uint32_t function, thread;
    uint32_t flags; /* HOTFN_NODE_* */
    uint32_t reserved;
    uint64_t calls, total_ns, self_ns;
    hotfn_alloc_cell self_alloc;
    uint64_t waited_ns; /* in the function itself; not part of self_ns */
} hotfn_record_node;

typedef struct hotfn_record_slow_call {
    uint32_t size;                   /* sizeof(hotfn_record_slow_call) */
    uint32_t function, thread, node; /* HOTFN_NO_NODE: stack not known */
    uint64_t start_ns;               /* since the run's start          */
    uint64_t duration_ns;
} hotfn_record_slow_call;

typedef struct hotfn_record_event {
    uint32_t size; /* sizeof(hotfn_record_event) */
    uint32_t thread, function;
    uint32_t kind; /* 1 entry, 2 exit */
    uint64_t time_ns;
} hotfn_record_event;

/* The calls of a function by the threads of one row, and their times, as hotfn_record_timing has
 * them for all threads. */
typedef struct hotfn_record_thread_timing {
    uint32_t size; /* sizeof(hotfn_record_thread_timing) */
    uint32_t function;
    uint32_t timing; /* HOTFN_TIMING_COUNT_ONLY, _FULL, _SAMPLE */
    uint32_t reserved;
    uint64_t calls;
    uint64_t timed_calls;
    uint64_t total_ns, self_ns;
    uint64_t total_error_ns, self_error_ns;
    uint64_t max_ns;
    uint64_t waited_ns, total_waited_ns;
} hotfn_record_thread_timing;
#define HOTFN_RECORD_THREAD_TIMING_INIT                                                            \
    {                                                                                              \
        (uint32_t)sizeof(hotfn_record_thread_timing), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0           \
    }
#define HOTFN_RECORD_TIMING_INIT                                                                   \
    {                                                                                              \
        (uint32_t)sizeof(hotfn_record_timing), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, { 0, 0, 0, 0 },       \
            { 0, 0, 0, 0 }, 0, 0, 0, 0, 0, 0, 0                                                    \
    }
#define HOTFN_RECORD_EDGE_INIT                                                                     \
    {                                                                                              \
        (uint32_t)sizeof(hotfn_record_edge), 0, 0, 0, 0, 0,                                        \
        {                                                                                          \
            0, 0, 0, 0                                                                             \
        }                                                                                          \
    }
#define HOTFN_RECORD_NODE_INIT                                                                     \
    {                                                                                              \
        (uint32_t)sizeof(hotfn_record_node), 0, 0, 0, 0, 0, 0, 0, 0, { 0, 0, 0, 0 }, 0             \
    }
#define HOTFN_RECORD_SLOW_CALL_INIT                                                                \
    {                                                                                              \
        (uint32_t)sizeof(hotfn_record_slow_call), 0, 0, 0, 0, 0                                    \
    }
#define HOTFN_RECORD_EVENT_INIT                                                                    \
    {                                                                                              \
        (uint32_t)sizeof(hotfn_record_event), 0, 0, 0, 0                                           \
    }

/* Any record answers; one without times has flags 0; note is a view.  HOTFN_OK, HOTFN_E_OPTION. */
HOTFN_API hotfn_status hotfn_record_get_time_info(const hotfn_record *record,
                                                  hotfn_record_time_info *out);
/* The times of a function, over the chosen threads; texts are views.  HOTFN_OK, HOTFN_E_NOT_FOUND
 * past the end, HOTFN_E_OPTION. */
HOTFN_API hotfn_status hotfn_record_get_timing(const hotfn_record *record, uint32_t function,
                                               hotfn_record_timing *out);
/* Edges by caller, then callee; nodes parents first, each directly before what it called; slow
 * calls in the order they ended; events thread after thread, oldest first.  As many as
 * hotfn_record_time_info counts; nodes of threads that are not chosen have no calls.  HOTFN_OK,
 * HOTFN_E_NOT_FOUND past the end, HOTFN_E_OPTION. */
HOTFN_API hotfn_status hotfn_record_get_edge(const hotfn_record *record, uint32_t index,
                                             hotfn_record_edge *out);
HOTFN_API hotfn_status hotfn_record_get_node(const hotfn_record *record, uint32_t index,
                                             hotfn_record_node *out);
HOTFN_API hotfn_status hotfn_record_get_slow_call(const hotfn_record *record, uint32_t index,
                                                  hotfn_record_slow_call *out);
HOTFN_API hotfn_status hotfn_record_get_event(const hotfn_record *record, uint64_t index,
                                              hotfn_record_event *out);
/* Kinds of hotfn_record_get_array. */
#define HOTFN_ARRAY_TIMINGS 1u /* hotfn_record_timing, one for each function */
#define HOTFN_ARRAY_EDGES 2u   /* hotfn_record_edge                          */
#define HOTFN_ARRAY_NODES 3u   /* hotfn_record_node                          */
/* The functions that the thread at an index called, by their index.  out receives the first
 * `capacity` of them, each of struct_bytes bytes; count receives their number.  HOTFN_OK,
 * HOTFN_E_NOT_FOUND past the last thread, HOTFN_E_NO_MEMORY, HOTFN_E_OPTION. */
HOTFN_API hotfn_status hotfn_record_get_thread_timings(const hotfn_record *record, uint32_t thread,
                                                       hotfn_record_thread_timing *out,
                                                       uint32_t struct_bytes, uint32_t capacity,
                                                       uint32_t *count);
/* How many timed calls of a function took how long (sampled: how many they represent): counts has
 * HOTFN_HISTOGRAM_BUCKETS words, set to 0 first.  A bucket begins at
 * hotfn_record_get_bucket_ns(record, bucket) and ends where the next begins. HOTFN_OK (all 0: not
 * timed, or no histogram was kept), HOTFN_E_NOT_FOUND past the end. */
HOTFN_API hotfn_status hotfn_record_get_histogram(const hotfn_record *record, uint32_t function,
                                                  uint64_t *counts);
/* In nanoseconds, the hooks' own cost left in; HOTFN_HISTOGRAM_BUCKETS: where the last one ends.  0
 * beyond that, and of a record without times. */
HOTFN_API double hotfn_record_get_bucket_ns(const hotfn_record *record, uint32_t bucket);

#ifdef __cplusplus
}
#endif

#endif
