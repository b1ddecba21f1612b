/* SPDX-License-Identifier: MIT */
/*
 * HOT PATH: the part of a thread's time, by the tick clock, in which it was not on a processor: it
 * waited, or other threads ran.
 *
 * Where ticks are seen, a thread reads its own processor time if the last reading is long enough
 * ago.  What passed since then by the clock, but not in processor time, is waiting.  It belongs to
 * the place of the longest interval between two events in that time: a wait that is longer than the
 * time between two readings is always such an interval.  Shorter waits may come several at a time,
 * and only the longest of them is found.
 */
#ifndef HFN_COUNTERS_WAITING_H
#define HFN_COUNTERS_WAITING_H

#include "counters/timing/engine.h"

/* Stop reading processor times in the whole process: from now on times include waiting. */
HFN_KEEPS_REGISTERS void hfn_waiting_stop(uint64_t now);
/* The thread begins to use the row: nothing is known of it before this tick. */
void hfn_waiting_begin(hfn_time_state *t, uint64_t now);
/* Read the thread's processor time, and charge what it waited since the last reading. */
HFN_KEEPS_REGISTERS void hfn_waiting_read(hfn_time_state *t);
/* The same, with the thread's processor time as the system reports it to others. */
void hfn_waiting_charge(hfn_time_state *t, uint64_t cpu_ns);

/* An interval between two events of the thread has ended; node: its place, 0: none. */
static HFN_ALWAYS_INLINE void hfn_waiting_note(hfn_time_state *t, uint32_t node, uint64_t ticks)
{
    if (HFN_UNLIKELY(ticks > t->longest_ticks)) {
        t->longest_node = node;
        t->longest_ticks = ticks;
    }
}

static HFN_ALWAYS_INLINE bool hfn_waiting_is_due(const hfn_time_state *t)
{
    return hfn_time.cpu_rate != 0 &&
           hfn_load_tick(&t->last_tick) - hfn_load_tick(&t->cpu_tick) >= hfn_time.waiting_ticks;
}

#endif
