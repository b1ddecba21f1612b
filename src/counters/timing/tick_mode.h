/* SPDX-License-Identifier: MIT */
/* The two ends of a timed call by a tick clock (tick_mode.c). */
#ifndef HFN_COUNTERS_TICK_MODE_H
#define HFN_COUNTERS_TICK_MODE_H

#include "counters/timing/engine.h"

/* In assembly, one file a CPU: what a stub calls, at its frame, around the function's body. */
void hfn_tick_enter_entry(void);
void hfn_tick_exit_entry(void);

/* The values are what the code before the hook computes: the function's first argument, and its
 * result.  Any value will do. */
HFN_KEEPS_REGISTERS void hfn_tick_enter(hfn_time_frame *frame, uintptr_t first_argument);
HFN_KEEPS_REGISTERS void hfn_tick_exit(hfn_time_frame *frame, uintptr_t result);
/* Ticks have come since a hook began: they belong to no place. */
HFN_KEEPS_REGISTERS void hfn_tick_charge_hook(hfn_time_state *t);
/* All open calls without a start have begun at this own time of the thread. */
void hfn_tick_start_calls(hfn_time_state *t, uint64_t time);

#endif
