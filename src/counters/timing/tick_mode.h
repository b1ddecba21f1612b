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
/* Add the ticks since the hook began to the thread's hook_ticks, and charge them to no place. */
HFN_KEEPS_REGISTERS void hfn_tick_charge_hook(hfn_time_state *t);
/* Store `time`, the thread's own time, as the start of all open calls that have no start yet. */
void hfn_tick_start_calls(hfn_time_state *t, uint64_t time);

#endif
