/* SPDX-License-Identifier: MIT */
/*
 * Timing the calls of a process that was attached to.  A stub of a timed call has a frame on the
 * program's stack, so
 *
 * - unwinders must find its tables: the C library's two functions by which they search are replaced
 *   (replaced.h, os/core_unwind.h);
 * - its code must stay mapped until the call has returned: the core counts the frames
 *   (counters/timing/engine.h), and a detach waits for them (removal.c).
 */
#ifndef HFN_LAUNCH_ATTACH_TIMING_H
#define HFN_LAUNCH_ATTACH_TIMING_H

#include "launch/attach/attachment.h"

/* Room for the list of regions that unwinders search. */
#define HFN_TIMED_TABLE_BYTES (UINT64_C(256) << 10)

/* Can exceptions pass timed calls in all modules of the process?  HOTFN_OK; HOTFN_E_UNSUPPORTED. */
hotfn_status hfn_timed_check_modules(hfn_attachment *a, hotfn_error *err);
/* After the commit: are the two functions replaced? */
hotfn_status hfn_timed_check_hooks(const hfn_attachment *a, hotfn_error *err);
/* Write the list of the stubs and their tables, which the core reads. */
bool hfn_timed_write_tables(const hfn_attachment *a);

#endif
