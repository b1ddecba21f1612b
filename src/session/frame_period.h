/* SPDX-License-Identifier: MIT */
/* What a frame with times or spikes keeps: snapshots of its begin and its end. */
#ifndef HFN_SESSION_FRAME_PERIOD_H
#define HFN_SESSION_FRAME_PERIOD_H

#include "records/finish.h"

#include <hotfn/frame.h>

typedef struct hfn_frame_period {
    hotfn_env env;
    hfn_live *live; /* of the session */
    bool is_timed;
    hfn_snapshot *from, *to; /* of the frame that ended last; to: begin of the next one */
    hfn_times times;         /* between them, if is_timed                               */
    uint64_t *self, *total;  /* [slot_count]: ticks, summed over the threads            */
    uint32_t slot_count;
} hfn_frame_period;

void hfn_frame_period_init(hfn_frame_period *period, hfn_live *live, bool is_timed,
                           const hotfn_env *env);
void hfn_frame_period_finish(hfn_frame_period *period);
/* End the period and begin the next one; after a failure it continues. */
hotfn_status hfn_frame_period_next(hfn_frame_period *period, uint32_t slot_count, hotfn_error *err);
/* The times of a slot in all threads, or in the thread at `position` of those that timed it.  False
 * if there is no such thread. */
void hfn_frame_period_sum(const hfn_frame_period *period, uint32_t slot, hotfn_frame_times *out);
bool hfn_frame_period_get_thread(const hfn_frame_period *period, uint32_t slot, uint32_t position,
                                 hotfn_frame_times *out);

#endif
