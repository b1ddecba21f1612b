/* SPDX-License-Identifier: MIT */
/* Parallel loops: threads take items from a common counter until none remains. */
#ifndef HFN_VERDICTS_WORKERS_H
#define HFN_VERDICTS_WORKERS_H

#include "base/progress.h"

#include <stdint.h>

typedef void (*hfn_work_fn)(void *user, uint32_t item);

/* Call work(user, i) once for each i < item_count, in any order, on up to `threads` threads
 * including the caller's. Returns when all calls have returned.  If a thread cannot be created,
 * fewer are used.  The share of the items that are begun is reported to progress, and its end. */
void hfn_workers_run(uint32_t threads, uint32_t item_count, hfn_work_fn work, void *user,
                     hfn_progress progress);

/* The default number of threads: the number of processors that are online, or 1 if there are 64 or
 * more. */
uint32_t hfn_workers_default(void);

#endif
