/* SPDX-License-Identifier: MIT */
/* What a counted and a timed call cost, measured once, when timing starts. */
#ifndef HFN_COUNTERS_HOOK_COST_H
#define HFN_COUNTERS_HOOK_COST_H

#include "counters/timing/timing.h"

/* Measure both on a row of its own, and write the costs to the header.  Timed calls only if the
 * engine needs the figure: to subtract it, or for a budget. */
void hfn_hook_cost_measure(const hfn_timing_calls *calls, uint64_t row_bytes);

#endif
