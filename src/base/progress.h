/* SPDX-License-Identifier: MIT */
/* Reports how far a loop has come to the env's progress_fn, about 100 times per loop. */
#ifndef HFN_BASE_PROGRESS_H
#define HFN_BASE_PROGRESS_H

#include <hotfn/env.h>

/* All zero: nothing is reported. */
typedef struct hfn_progress {
    const hotfn_env *env; /* NULL: nothing is reported */
    hotfn_progress now;
    uint64_t next; /* the next report is due when this much is done */
} hfn_progress;

/* Begin a loop over `total` pieces.  env, action and file must outlive it. */
hfn_progress hfn_progress_begin(const hotfn_env *env, const char *action, const char *file,
                                uint64_t total);
void hfn_progress_report(hfn_progress *progress, uint64_t done);
/* The loop has ended, also if it failed. */
void hfn_progress_end(hfn_progress *progress);

/* `done` pieces are done; only the thread that began the loop may make this call. */
static inline void hfn_progress_reach(hfn_progress *progress, uint64_t done)
{
    if (done >= progress->next) {
        hfn_progress_report(progress, done);
    }
}

#endif
