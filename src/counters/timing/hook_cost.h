/* SPDX-License-Identifier: MIT */
/* The costs of a counted and of a timed call, which are measured once, when timing starts. */
#ifndef HFN_COUNTERS_HOOK_COST_H
#define HFN_COUNTERS_HOOK_COST_H

#include "counters/timing/timing.h"

/* Measure the costs on a separate row and write them to the header.  By ticks the cost of a timed
 * call is all outside: no tick comes in so short a time, and none is subtracted. */
void hfn_hook_cost_measure(const hfn_timing_calls *calls, uint64_t row_bytes);

#endif
