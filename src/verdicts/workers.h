/* SPDX-License-Identifier: MIT */
/* Work spread over threads: items are taken from a common counter until none is left. */
#ifndef HFN_VERDICTS_WORKERS_H
#define HFN_VERDICTS_WORKERS_H

#include <stdint.h>

typedef void (*hfn_work_fn)(void *user, uint32_t item);

/* Call work(user, i) once for each i below item_count, in any order, on up to `threads` threads of which
 * the caller's is one; with 1 no thread is made.  Returns when all are done.  A thread that cannot be
 * made only makes it slower. */
void hfn_workers_run(uint32_t threads, uint32_t item_count, hfn_work_fn work, void *user);

/* What `threads` 0 stands for: the CPUs this process may use. */
uint32_t hfn_workers_default(void);

#endif
