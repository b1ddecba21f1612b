/* SPDX-License-Identifier: MIT */
/* The period of a frame with times or spikes: snapshots of its beginning and of its end, and the
 * times between them. */
#ifndef HFN_SESSION_FRAME_PERIOD_H
#define HFN_SESSION_FRAME_PERIOD_H

#include "records/finish.h"

#include <hotfn/frame.h>

typedef struct hfn_frame_period {
    hotfn_env env;
    hfn_live *live; /* of the session */
    bool is_timed;
    hfn_snapshot *from, *to; /* beginning and end of the frame that ended last; `to` is also the
                                beginning of the current frame; NULL: not taken yet     */
    hfn_times times;         /* between `from` and `to`, if is_timed                    */
    uint64_t *self, *total;  /* [slot_count]: ticks, summed over the threads            */
    uint32_t slot_count;
} hfn_frame_period;

void hfn_frame_period_init(hfn_frame_period *period, hfn_live *live, bool is_timed,
                           const hotfn_env *env);
void hfn_frame_period_finish(hfn_frame_period *period);
/* End the period and begin the next one.  If this fails, the period continues. */
hotfn_status hfn_frame_period_next(hfn_frame_period *period, uint32_t slot_count, hotfn_error *err);
/* Add up the times of a slot in all threads, or get those in one of the threads in which it was
 * timed (position 0 is the first; false if there is no such thread). */
void hfn_frame_period_sum(const hfn_frame_period *period, uint32_t slot, hotfn_frame_times *out);
bool hfn_frame_period_get_thread(const hfn_frame_period *period, uint32_t slot, uint32_t position,
                                 hotfn_frame_times *out);

#endif
