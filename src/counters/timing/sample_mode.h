/* SPDX-License-Identifier: MIT */
/* The two ends of a call that is timed as one of a sample (sample_mode.c). */
#ifndef HFN_COUNTERS_SAMPLE_MODE_H
#define HFN_COUNTERS_SAMPLE_MODE_H

#include "counters/timing/engine.h"

/* In assembly, one file a CPU: what a stub calls, at its frame, around the function's body. */
void hfn_time_enter_sampled_entry(void);
void hfn_time_exit_sampled_entry(void);

HFN_KEEPS_REGISTERS void hfn_time_enter_sampled(hfn_time_frame *frame);
HFN_KEEPS_REGISTERS void hfn_time_exit_sampled(hfn_time_frame *frame);

/* An open call ends of which no frame may exist any more. */
void hfn_sample_end_call(hfn_time_state *state, const hfn_open_call *call, uint64_t now);

#endif
