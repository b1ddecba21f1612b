/* SPDX-License-Identifier: MIT */
/* The two ends of a call that is timed as one of a sample. */
#ifndef HFN_COUNTERS_SAMPLE_MODE_H
#define HFN_COUNTERS_SAMPLE_MODE_H

#include "counters/timing/call_stack.h"

/* As hfn_time_leave and hfn_time_end_row, for a sample. */
void hfn_sample_leave(uint64_t frame);
void hfn_sample_end_row(hfn_time_state *state, uint64_t now);

#endif
