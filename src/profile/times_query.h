/* SPDX-License-Identifier: MIT */
/* The estimates of a record's times, by the files that make them. */
#ifndef HFN_PROFILE_TIMES_QUERY_H
#define HFN_PROFILE_TIMES_QUERY_H

#include "profile/times_sum.h"
#include "records/reader.h"

/* times_query.c: ticks as nanoseconds; ticks without the inner cost of so many calls and the outer one
 * of so many; a node's, corrected and scaled up, and its callees'. */
uint64_t hfn_times_ns(const hotfn_record *record, uint64_t ticks);
/* Tick clock: a time of T ns has a variance of T times this. */
double hfn_times_tick_error_ns(const hfn_time_header *header);
double hfn_times_root(double x); /* square root; 0 of a negative number */
uint64_t hfn_times_less_cost(const hotfn_record *record, uint64_t ticks, uint64_t inside_calls,
                             uint64_t outside_calls);
/* Of `outermost` calls, less what hooks within them cost too: of a slot, a node, an edge. */
uint64_t hfn_times_less_hooks(const hotfn_record *record, uint64_t ticks, uint64_t within,
                              uint64_t outermost);
/* One call's, less its share of what hooks below it cost. */
uint64_t hfn_times_one_call(const hotfn_record *record, const hfn_slot_sum *sum, uint64_t ticks);
uint64_t hfn_times_one_call_ns(const hotfn_record *record, const hfn_slot_sum *sum, uint64_t ticks);
uint64_t hfn_times_node_ticks(const hotfn_record *record, uint32_t node);
/* counts: a histogram over the shown threads; and where its buckets begin. */
void hfn_times_histogram(const hotfn_record *record, const hfn_slot_sum *sum, uint64_t *counts);
uint64_t hfn_times_bucket_begin(uint32_t bucket);
uint64_t hfn_times_callee_ticks(const hotfn_record *record, uint32_t node);
/* times_tree.c: what a row spent in timed functions, from outermost entry to outermost exit. */
uint64_t hfn_record_busy_ns(const hotfn_record *record, uint32_t row);

#endif
