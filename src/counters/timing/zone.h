/* SPDX-License-Identifier: MIT */
/* A zone: a call that the program begins and ends itself, without a stub. */
#ifndef HFN_COUNTERS_ZONE_H
#define HFN_COUNTERS_ZONE_H

#include "counters/timing/engine.h"

/* Count a call in the slot, and if calls are timed, begin it.  Unlike a stub's frame, `frame` may
 * lie anywhere in memory. */
void hfn_zone_enter(hfn_time_frame *frame, uint32_t slot);
/* Set the frame of a zone that is not recorded. */
void hfn_zone_skip(hfn_time_frame *frame);
void hfn_zone_leave(hfn_time_frame *frame);

#endif
