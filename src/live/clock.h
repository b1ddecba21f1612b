/* SPDX-License-Identifier: MIT */
/* The clock that times calls: its kind and its rate. */
#ifndef HFN_LIVE_CLOCK_H
#define HFN_LIVE_CLOCK_H

#include <stdint.h>

#define HFN_TICK_US 4u /* mean interval of a tick clock, if a processor is idle */

typedef struct hfn_clock {
    uint32_t kind; /* HOTFN_CLOCK_* */
    uint64_t ticks_per_second;
    uint64_t resolution_ticks;
    uint64_t start_ticks;  /* when it was chosen, by this clock ...    */
    uint64_t start_raw_ns; /* ... and by the system's clock, not adjusted */
} hfn_clock;

/* Choose the processor's own counter where it is steady; measures it for some milliseconds. */
hfn_clock hfn_clock_choose(void);
/* Ticks a second, measured since the clock was chosen. */
uint64_t hfn_clock_measure(const hfn_clock *clock);
uint64_t hfn_clock_read(uint32_t kind);

#endif
