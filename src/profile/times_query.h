/* SPDX-License-Identifier: MIT */
/* Conversions from ticks to the values that queries return. */
#ifndef HFN_PROFILE_TIMES_QUERY_H
#define HFN_PROFILE_TIMES_QUERY_H

#include "profile/times_sum.h"
#include "records/reader.h"

/* times_query.c */
uint64_t hfn_times_ns(const hotfn_record *record, uint64_t ticks);
double hfn_times_root(double x); /* square root; 0 of a negative number */
/* Tick clock: the random part of the standard error of a time.  The other part, the time that hooks
 * have shifted, is the same in each run. */
uint64_t hfn_times_random_error_ns(const hotfn_record *record, uint64_t ns);
/* Fill timing with the mode and the times of a function, from the sum of its cells of all chosen
 * threads, or of one thread. */
void hfn_times_fill_timing(const hotfn_record *record, uint32_t function, const hfn_slot_sum *sum,
                           hotfn_record_timing *timing);
/* Add the histogram of a function over the chosen threads to counts; returns the sum of what was
 * added. */
uint64_t hfn_times_add_histogram(const hotfn_record *record, const hfn_slot_sum *sum,
                                 uint64_t *counts);

/* times_tree.c */
/* Tick clock: a time of T ns has a variance of T times this value. */
double hfn_times_tick_error_ns(const hfn_time_header *header);
/* The time that the row's threads spent inside timed functions, from outermost entry to outermost
 * exit. */
uint64_t hfn_record_busy_ns(const hotfn_record *record, uint32_t row);
uint64_t hfn_record_waited_ns(const hotfn_record *record, uint32_t row);

#endif
