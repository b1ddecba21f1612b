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
    uint64_t within_timed, outermost_timed; /* timed calls within its outermost ones, and those */
    uint64_t weight;       /* sampled: calls that the timed ones stand for; about `calls` */
    double sample_squares; /* sampled: variance of its total (ticks), before that is fitted */
    double total_squares, self_squares; /* merged: squares of the errors (ns)        */
    uint32_t function;                  /* HOTFN_NO_FUNCTION: of none                   */
    uint32_t first_entry, entry_count;  /* in entry_order                               */
    uint32_t first_node;                /* of its nodes; UINT32_MAX: none               */
    hotfn_alloc_cell self_alloc, total_alloc;
} hfn_slot_sum;

typedef struct hfn_node_sum {
    uint64_t below_timed; /* timed calls below it                            */
    uint32_t edge;        /* UINT32_MAX: none, as nobody called it                   */
    uint32_t first_child, next_sibling, next_of_slot; /* UINT32_MAX: none */
    uint32_t is_chosen; /* its thread belongs to the chosen process        */
    uint32_t is_outermost_function, is_outermost_edge; /* no ancestor is of the same */
    hotfn_alloc_cell total_alloc;
} hfn_node_sum;

typedef struct hfn_edge_sum {
    uint32_t caller, callee; /* slots; HOTFN_NO_SLOT: from outside */
    uint32_t flags;
    uint64_t calls, timed_calls;
    uint64_t total_ticks, within_timed; /* of the outermost */
    uint64_t outermost_timed;
    hotfn_alloc_cell total_alloc; /* of the outermost */
} hfn_edge_sum;

typedef struct hfn_thread_sum {
    uint64_t timed_calls;
    uint64_t outermost_timed; /* called from outside: known from a tree */
} hfn_thread_sum;

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
    hfn_thread_sum *threads;
    uint32_t thread_count;
} hfn_time_sums;

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
