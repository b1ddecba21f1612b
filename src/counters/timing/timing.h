/* SPDX-License-Identifier: MIT */
/* Timing, from the counters' side: started once rows exist, before the first timed hook is
 * installed. */
#ifndef HFN_COUNTERS_TIMING_H
#define HFN_COUNTERS_TIMING_H

#include "counters/timing/engine.h"

/* Measure what a timed call costs, for a later start with this memory.  Does nothing if counters
 * existed in this process: a thread may still be in a stub then. */
void hfn_timing_measure(const hfn_time_memory *memory, uint32_t slot_capacity);
/* Rows of the active set hold times from now on; measures what a timed call costs if that has not
 * been done. */
void hfn_timing_start(const hfn_time_memory *memory);
/* Stop timing: calls that begin later are only counted, and open calls leave no time when they
 * return.  Returns the time by the clock; 0: nothing was timed. */
uint64_t hfn_timing_stop(void);
/* After hfn_timing_stop, once no thread executes an entry or exit probe: end all calls that are
 * open in this process's rows at `now`. */
void hfn_timing_end_rows(uint64_t now);
/* The thread is about to lose the right to read the clock, and would be killed by the next timed
 * call: from now on calls are only counted.  Returns the clock, for
 * hfn_timing_restart_clock if it kept the right; else pass *at, its last value, to
 * hfn_timing_record_stop. */
uint32_t hfn_timing_stop_clock(uint64_t *at);
void hfn_timing_record_stop(uint64_t at);
void hfn_timing_restart_clock(uint32_t clock);
/* The process may lose the right to read processor times: from now on, times include waiting. */
void hfn_timing_stop_waiting(void);
/* Let an engine measure how long threads wait, if the clock and the system allow it. */
void hfn_timing_start_waiting(hfn_time_engine *engine, hfn_time_header *header);
/* What stubs call, for the row access; all NULL while nothing is timed. */
typedef struct hfn_timing_calls {
    void (*enter)(void), (*exit)(void), (*personality)(void);
    uint32_t skips_at; /* in a row; 0: every call is timed */
} hfn_timing_calls;
hfn_timing_calls hfn_timing_get_calls(void);

#endif
