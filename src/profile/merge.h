/* SPDX-License-Identifier: MIT */
/* A merge: maps each function of each record to a function of the new record.  merge.c makes the
 * map and merges the counts, merge_times.c merges the times, merge_budgets.c the budgets. */
#ifndef HFN_PROFILE_MERGE_H
#define HFN_PROFILE_MERGE_H

#include "profile/profile.h"

typedef struct hfn_merge {
    hotfn_env env;
    hotfn_record **records;
    uint32_t record_count, mode;
    uint32_t **places; /* [record][function]: its index in the new record */
    uint64_t *sorted;  /* [record], for hfn_merge_find_ranked             */
    uint32_t function_count;
} hfn_merge;

/* Merge count values by the mode; records without a value count as 0, except in a minimum and a
 * mean over the runs that called the function. */
uint64_t hfn_merge_values(const hfn_merge *merge, const uint64_t *values, uint32_t count);
/* By the mode: the two values in the middle, whose mean is the median, or the 95th percentile in
 * both results.  Records without a value count as 0. */
void hfn_merge_find_ranked(const hfn_merge *merge, const uint64_t *values, uint32_t count,
                           uint64_t *first, uint64_t *second);
/* The number of rows of the new record: one for each run if counts are summed, otherwise 1. */
uint32_t hfn_merge_rows(const hfn_merge *merge);

/* Merge the times into out, which has the merged counts; does nothing unless all runs were timed.
 * False: no memory. */
bool hfn_merge_times(const hfn_merge *merge, hotfn_record *out);
/* Mark a count of out as a lower bound if it is one in any run.  False: no memory. */
bool hfn_merge_budgets(const hfn_merge *merge, hotfn_record *out);

#endif
