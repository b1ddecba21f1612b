/* SPDX-License-Identifier: MIT */
/* The two ends of a call that is timed by the processor's counter (counter_mode.c). */
#ifndef HFN_COUNTERS_COUNTER_MODE_H
#define HFN_COUNTERS_COUNTER_MODE_H

#include "counters/timing/engine.h"

/* In assembly, one file a CPU: what a stub calls, at its frame, around the function's body. */
void hfn_counter_enter_entry(void);
void hfn_counter_exit_entry(void);

HFN_KEEPS_REGISTERS void hfn_counter_enter(hfn_time_frame *frame);
HFN_KEEPS_REGISTERS void hfn_counter_exit(hfn_time_frame *frame);
/* The counter is behind the thread's latest event, for instance on another processor. */
HFN_KEEPS_REGISTERS void hfn_counter_reset_tick(hfn_time_state *t, uint64_t now);

#endif
