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
/* Sampled: what a slot's timed calls stand for, fitted to how many calls there were; else value. */
uint64_t hfn_times_scaled(const hotfn_record *record, uint32_t slot, uint64_t value);
/* Once the sums are made: of each function's calls, for the errors of a sample.  Then its bounds (times_bounds.c). */
void hfn_times_find_variances(hotfn_record *record);
void hfn_times_bound_sample(hotfn_record *record);
/* Before that: what is known from calls that were all timed (times_exact.c).  False: no memory. */
bool hfn_times_use_exact(hotfn_record *record);
/* times_totals.c.  Sampled: the total of a slot's outermost calls, and its own time; their standard errors, or
 * HFN_TICKS_UNKNOWN and more; ticks. */
#define HFN_TICKS_UNKNOWN 1e18
uint64_t hfn_times_sampled_ticks(const hotfn_record *record, const hfn_slot_sum *sum);
uint64_t hfn_times_sampled_self(const hotfn_record *record, const hfn_slot_sum *sum);
double hfn_times_total_error(const hotfn_record *record, const hfn_slot_sum *sum);
double hfn_times_self_error(const hotfn_record *record, const hfn_slot_sum *sum);
/* Of all its calls, those in each other too. */
double hfn_times_sample_error(const hotfn_record *record, const hfn_slot_sum *sum);
/* Was each of its calls timed? */
bool hfn_times_is_known(const hotfn_record *record, const hfn_slot_sum *sum);
/* Before a sample's bounds, once they are known, and again when what hooks cost is taken out or left in: of each circle of functions. */
void hfn_times_sum_cycles(hotfn_record *record);
/* Sampled: scaled up, and cut down to what the slot can have taken. */
uint64_t hfn_times_cut(const hotfn_record *record, uint32_t slot, uint64_t ticks);
/* What a node's estimate is multiplied with, since it cannot be so long; 1: it can. */
double hfn_times_node_cut(const hotfn_record *record, uint32_t node);
uint64_t hfn_times_node_ticks(const hotfn_record *record, uint32_t node);
/* Sampled: before it is scaled up and cut down. */
double hfn_times_node_raw(const hotfn_record *record, uint32_t node);
/* counts: a histogram over the shown threads; and where its buckets begin. */
void hfn_times_histogram(const hotfn_record *record, const hfn_slot_sum *sum, uint64_t *counts);
uint64_t hfn_times_bucket_begin(uint32_t bucket);
/* The next of its callees, or of those that it came to by counted-only functions; UINT32_MAX: the first, the end. */
uint32_t hfn_times_next_callee(const hotfn_record *record, uint32_t node, uint32_t callee);
uint64_t hfn_times_callee_ticks(const hotfn_record *record, uint32_t node);
/* times_tree.c: what a row spent in timed functions, from outermost entry to outermost exit. */
uint64_t hfn_record_busy_ns(const hotfn_record *record, uint32_t row);

#endif
