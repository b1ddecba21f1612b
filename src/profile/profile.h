/* SPDX-License-Identifier: MIT */
/* The profile of a record: what is computed from its counts and times.  records/ loads and checks
 * the file; this folder opens it for queries, estimates times and merges records. */
#ifndef HFN_PROFILE_PROFILE_H
#define HFN_PROFILE_PROFILE_H

#include "profile/times_query.h"
#include "profile/times_sum.h"
#include "records/reader.h"

/* Compute the time sums again, for the chosen process and thread.  HOTFN_OK, HOTFN_E_NO_MEMORY (the
 * former sums stay). */
hotfn_status hfn_profile_sum_times(hotfn_record *record);

/* callers.c: sort the edges of sums by callee, as the record's edges_by_callee; false: no memory,
 * and the record keeps its former order. */
bool hfn_callers_make(hotfn_record *record, hfn_time_sums *sums);
void hfn_callers_free(hotfn_record *record);

/* arrays.c: whether array elements of struct_bytes bytes can hold a struct of known_bytes. */
bool hfn_profile_is_element_size(uint32_t struct_bytes, uint32_t known_bytes);

#endif
