/* SPDX-License-Identifier: MIT */
/* The entry and exit probes of a call that is timed by a tick clock (tick_mode.c). */
#ifndef HFN_COUNTERS_TICK_MODE_H
#define HFN_COUNTERS_TICK_MODE_H

#include "counters/timing/engine.h"

/* The entry points that a stub calls before and after the function's body, with its frame.  They
 * are in assembly, one file for each CPU. */
void hfn_tick_enter_entry(void);
void hfn_tick_exit_entry(void);

/* The second parameters make a probe depend on the code before it: the function's first argument,
 * or its result.  Their values do not matter. */
HFN_KEEPS_REGISTERS void hfn_tick_enter(hfn_time_frame *frame, uintptr_t first_argument);
HFN_KEEPS_REGISTERS void hfn_tick_exit(hfn_time_frame *frame, uintptr_t result);
/* Charge the ticks since a hook began to no place. */
HFN_KEEPS_REGISTERS void hfn_tick_charge_hook(hfn_time_state *t);
/* Set the start of all open calls that have none to this own time of the thread. */
void hfn_tick_start_calls(hfn_time_state *t, uint64_t time);

#endif
