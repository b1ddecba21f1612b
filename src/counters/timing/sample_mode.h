/* SPDX-License-Identifier: MIT */
/* Entry and exit probes for calls that are timed as part of a sample (sample_mode.c). */
#ifndef HFN_COUNTERS_SAMPLE_MODE_H
#define HFN_COUNTERS_SAMPLE_MODE_H

#include "counters/timing/engine.h"

/* Called by a stub before and after the function's body, with the stub's frame at the top of the
 * stack.  In assembly, one file for each CPU. */
void hfn_time_enter_sampled_entry(void);
void hfn_time_exit_sampled_entry(void);

HFN_KEEPS_REGISTERS void hfn_time_enter_sampled(hfn_time_frame *frame);
HFN_KEEPS_REGISTERS void hfn_time_exit_sampled(hfn_time_frame *frame);

/* End an open call whose stub frame may no longer exist. */
void hfn_sample_end_call(hfn_time_state *state, const hfn_open_call *call, uint64_t now);

#endif
