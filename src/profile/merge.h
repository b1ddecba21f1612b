/* SPDX-License-Identifier: MIT */
/* Inside of a merge: which function of which record becomes which one of the new record.  merge.c
 * makes that and the counts, merge_times.c the times. */
#ifndef HFN_PROFILE_MERGE_H
#define HFN_PROFILE_MERGE_H

#include "profile/profile.h"

typedef struct hfn_merge {
    hotfn_env env;
    hotfn_record **records;
    uint32_t record_count, mode;
    uint32_t **places; /* [record][function]: its index in the new record */
    uint32_t function_count;
} hfn_merge;

/* One value out of those of the records that have it; absent ones are 0 in a sum and a mean. */
uint64_t hfn_merge_values(const hfn_merge *merge, const uint64_t *values, uint32_t count);
/* Rows of the new record: one a run for a sum, else one. */
uint32_t hfn_merge_rows(const hfn_merge *merge);

/* Fill out, a record that was just made of the counts; does nothing unless all records were timed.
 * False: no memory. */
bool hfn_merge_times(const hfn_merge *merge, hotfn_record *out);
/* merge_budgets.c: which counts are lower bounds.  False: no memory. */
bool hfn_merge_budgets(const hfn_merge *merge, hotfn_record *out);

#endif
