/* SPDX-License-Identifier: MIT */
/* Entry and exit probes for calls that are timed by the processor's counter (counter_mode.c). */
#ifndef HFN_COUNTERS_COUNTER_MODE_H
#define HFN_COUNTERS_COUNTER_MODE_H

#include "counters/timing/engine.h"

/* Called by a stub before and after the function's body, with the stub's frame at the top of the
 * stack.  In assembly, one file for each CPU. */
void hfn_counter_enter_entry(void);
void hfn_counter_exit_entry(void);

HFN_KEEPS_REGISTERS void hfn_counter_enter(hfn_time_frame *frame);
HFN_KEEPS_REGISTERS void hfn_counter_exit(hfn_time_frame *frame);
/* Called if the counter (now) is behind the thread's latest event, for instance because the thread
 * has moved to another processor. */
HFN_KEEPS_REGISTERS void hfn_counter_reset_tick(hfn_time_state *t, uint64_t now);

#endif
