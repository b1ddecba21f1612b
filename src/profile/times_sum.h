/* SPDX-License-Identifier: MIT */
/* Values that are derived from a record's times: the sums of each function over the chosen threads,
 * the links of the call tree, and its edges.  The passes listed in times_sum.c compute them and do
 * not change their input.  All times are in ticks; times_query.c and times_tree.c convert them to
 * nanoseconds. */
#ifndef HFN_PROFILE_TIMES_SUM_H
#define HFN_PROFILE_TIMES_SUM_H

#include "records/times.h"

typedef struct hfn_slot_sum {
    uint64_t calls, timed_calls;
    uint64_t open_calls; /* timed calls that had not returned at the end              */
    uint64_t total_ticks, self_ticks, max_ticks;
    uint64_t waited_ticks, total_waited_ticks; /* in the function itself; part of total_ticks */
    uint64_t callee_timed; /* timed calls that it made                                */
    uint64_t within_timed; /* its outermost calls, and all timed calls inside them    */
    uint64_t weight;       /* sampled: calls that the timed ones represent; about `calls` */
    double sample_squares; /* sampled: variance of its total (ticks), not yet fitted to calls */
    double total_squares, self_squares; /* merged: squares of the errors (ns)         */
    uint32_t function;                  /* HOTFN_NO_FUNCTION: none has the slot       */
    uint32_t first_entry, entry_count;  /* in entry_order                             */
    hotfn_alloc_cell self_alloc, total_alloc;
} hfn_slot_sum;

typedef struct hfn_node_sum {
    uint32_t edge;                      /* UINT32_MAX: none, as it was never called   */
    uint32_t first_child, next_sibling; /* UINT32_MAX: none                           */
    uint32_t is_chosen;                 /* its thread belongs to the chosen process   */
    uint32_t is_outermost_function, is_outermost_edge; /* no ancestor is of the same  */
    hotfn_alloc_cell total_alloc;
} hfn_node_sum;

typedef struct hfn_edge_sum {
    uint32_t caller, callee; /* slots; HOTFN_NO_SLOT: from outside */
    uint32_t flags;
    uint64_t calls;
    uint64_t total_ticks;         /* of the outermost calls        */
    hotfn_alloc_cell total_alloc; /* likewise                      */
} hfn_edge_sum;

typedef struct hfn_time_sums {
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
} hfn_time_sums;

/* What the sums are computed from. */
typedef struct hfn_sum_input {
    const hfn_times *times;
    const uint64_t *calls;    /* [slot_count]   */
    const uint32_t *function; /* [slot_count]   */
    const uint8_t *chosen;    /* [thread_count] */
    uint32_t slot_count;
} hfn_sum_input;

/* Add an entry of a thread to the sum of its function.  flags: of the header. */
void hfn_time_sums_add_entry(hfn_slot_sum *sum, const hfn_time_entry *entry, uint32_t flags);
/* False: no memory; out is empty then. */
bool hfn_time_sums_make(hfn_time_sums *out, const hfn_sum_input *in, const hotfn_env *env);
void hfn_time_sums_finish(hfn_time_sums *sums);

#endif
