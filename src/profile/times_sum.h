/* SPDX-License-Identifier: MIT */
/* What is derived from a record's timing, in one pass: sums of a function over the threads of the
 * chosen process, what lies below each node, edges.  Still ticks; the hooks' own cost is taken out
 * when somebody asks (hfn_corrected). */
#ifndef HFN_PROFILE_TIMES_SUM_H
#define HFN_PROFILE_TIMES_SUM_H

#include "records/times.h"

typedef struct hfn_slot_sum {
    uint64_t calls, timed_calls;
    uint64_t open_calls; /* of the timed ones: had not returned at the end                */
    uint64_t total_ticks, self_ticks;
    uint64_t min_ticks, max_ticks; /* min plus 1, as in a cell                     */
    uint64_t callee_timed;
    uint64_t within_timed,
        outermost_timed; /* timed calls within its outermost ones, and those; sampled: ticks
                                             * that hooks took within, and timed calls */
    uint64_t stood_for;  /* sampled: calls that the timed ones stand for; about `calls` */
    uint64_t spread;     /* and the sum of its nodes'                                   */
    double variance;     /* of a call's ticks; by the reader, as it takes histograms    */
    double cut;          /* sampled: what all its nodes are multiplied with (times_bounds.c) */
    double total_squares, self_squares; /* merged samples: their errors' squares               */
    uint32_t function;                  /* HOTFN_NO_FUNCTION: of none                   */
    uint32_t first_entry, entry_count;  /* in entry_order                               */
    uint32_t first_node;                /* of its nodes; UINT32_MAX: none               */
    uint32_t cycle;                     /* sampled: the same as of those it recurses with */
    double all_ticks;                   /* sampled: of all its nodes */
    double circle_ticks,
        circle_squares; /* of the slot that a cycle is named by: what calls into it took, and the
                                          * square of the standard error (times_totals.c) */
    hotfn_alloc_cell self_alloc, total_alloc;
} hfn_slot_sum;

/* A sample has places of callers whose own calls went by, and of counted-only functions. */
static inline bool hfn_time_was_called(const hfn_time_node *n)
{
    return n->calls > 0 || n->timed_calls > 0;
}

/* times_cycles.c: functions that call each other in circles share a number (slots[].cycle); one that is
 * in none has its own.  Edges are sorted by caller.  False: no memory. */
typedef struct hfn_time_sums hfn_time_sums;
bool hfn_time_find_cycles(hfn_time_sums *sums);

typedef struct hfn_node_sum {
    uint64_t below_timed; /* timed calls below it                            */
    uint32_t edge;        /* UINT32_MAX: none, as nobody called it                   */
    uint32_t first_child, next_sibling, next_of_slot; /* UINT32_MAX: none */
    uint32_t is_chosen; /* its thread belongs to the chosen process        */
    double more_ticks;  /* sampled: what is added to what it stands for: times_exact.c      */
    double cut;         /* sampled: what it is multiplied with then, before its slot's      */
    uint32_t is_outermost_function, is_outermost_edge; /* no ancestor is of the same */
    hotfn_alloc_cell total_alloc;
} hfn_node_sum;

typedef struct hfn_edge_sum {
    uint32_t caller, callee; /* slots; HOTFN_NO_SLOT: from outside */
    uint32_t flags;
    bool was_called; /* false: a caller came to others by this callee, which is counted only */
    uint64_t calls, timed_calls;
    uint64_t total_ticks, within_timed; /* of the outermost */
    uint64_t outermost_timed;           /* sampled: what those stand for */
    double more_ticks;                  /* and what is added to that, times_exact.c */
    double cut_ticks;                   /* and cut off then, times_bounds.c         */
    hotfn_alloc_cell total_alloc;       /* of the outermost */
} hfn_edge_sum;

typedef struct hfn_thread_sum {
    uint64_t timed_calls;
    uint64_t outermost_timed; /* called from outside: known from a tree */
} hfn_thread_sum;

struct hfn_time_sums {
    hotfn_env env;
    uint32_t flags; /* HOTFN_TIMING_* */
    hfn_slot_sum *slots;
    uint32_t slot_count;
    uint32_t *entry_order; /* of times.entries, by slot */
    size_t entry_count;
    hfn_node_sum *nodes;
    uint32_t node_count;
    hfn_edge_sum *edges;
    uint32_t edge_count, edge_capacity;
    hfn_thread_sum *threads;
    uint32_t thread_count;
};

/* Sampled: of the calls that stand for more than themselves, for how many. */
static inline double hfn_time_mean_gap(const hfn_slot_sum *sum)
{
    return sum->stood_for > sum->timed_calls
               ? 1 + (double)sum->spread / (double)(sum->stood_for - sum->timed_calls)
               : 1;
}

/* So few in a bucket of its histogram are first calls, all of which are timed: chance has no part in them. */
static inline bool hfn_time_stand_for_themselves(uint64_t calls, double gap)
{
    return 4 * (double)calls < gap;
}

/* What the sums are made for. */
typedef struct hfn_sum_input {
    const hfn_times *times;
    const uint64_t *calls;    /* [slot_count]   */
    const uint32_t *function; /* [slot_count]   */
    const uint8_t *chosen;    /* [thread_count] */
    uint32_t slot_count;
} hfn_sum_input;

/* False: no memory; out is empty then. */
bool hfn_time_sums_make(hfn_time_sums *out, const hfn_sum_input *in, const hotfn_env *env);
void hfn_time_sums_finish(hfn_time_sums *sums);

#endif
