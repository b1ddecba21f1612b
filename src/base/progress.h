/* SPDX-License-Identifier: MIT */
/* Calls the env's progress_fn about 100 times during a loop. */
#ifndef HFN_BASE_PROGRESS_H
#define HFN_BASE_PROGRESS_H

#include <hotfn/env.h>

/* All zero: nothing is reported. */
typedef struct hfn_progress {
    const hotfn_env *env; /* NULL: nothing is reported */
    hotfn_progress now;
    uint64_t next; /* the next report is due when so many units are done */
} hfn_progress;

/* Begin a loop over `total` units of work.  env, action and file must outlive the loop. */
hfn_progress hfn_progress_begin(const hotfn_env *env, const char *action, const char *file,
                                uint64_t total);
void hfn_progress_report(hfn_progress *progress, uint64_t done);
/* End the loop, even if it failed: the last report has done == total. */
void hfn_progress_end(hfn_progress *progress);

/* Report that `done` units are done, if a report is due.  Only the thread that began the loop may
 * make this call. */
static inline void hfn_progress_reach(hfn_progress *progress, uint64_t done)
{
    if (done >= progress->next) {
        hfn_progress_report(progress, done);
    }
}

#endif
