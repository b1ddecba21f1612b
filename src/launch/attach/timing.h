/* SPDX-License-Identifier: MIT */
/*
 * Timing the calls of a process that was attached to.  A stub of a timed call has a frame on the
 * program's stack, so
 *
 * - unwinders must find its tables: the C library's two functions by which they search are replaced
 *   (os/core_unwind.h);
 * - its code must stay mapped until the call has returned: the core counts the frames
 *   (counters/timing/engine.h), and a detach waits for them (removal.c).
 *
 * Two more functions are replaced for counted calls too.  A program that limits its system calls
 * (seccomp) could be killed for the calls that a thread's first hook makes, and for the reading of
 * its processor time.  So prctl and syscall of the C library are replaced, and the core makes no
 * call that the filter forbids (counters/core/system_calls.c).  If the functions of the C library
 * are counted, these two are counted and not replaced.
 */
#ifndef HFN_LAUNCH_ATTACH_TIMING_H
#define HFN_LAUNCH_ATTACH_TIMING_H

#include "launch/attach/attachment.h"

/* Room for the list of regions that unwinders search. */
#define HFN_TIMED_TABLE_BYTES (UINT64_C(256) << 10)

/* The files of a C library in which the functions are, for hfn_module_rules.replaced. */
extern const char *const hfn_replaced_libraries[];

/* Can exceptions pass timed calls in all modules of the process?  HOTFN_OK; HOTFN_E_UNSUPPORTED. */
hotfn_status hfn_timed_check_modules(hfn_attachment *a, hotfn_error *err);
/* Note which functions of the module will be replaced. */
void hfn_timed_find_functions(const hfn_attachment *a, hfn_mirror *m, const char *path);
/* Request their replacement; false: it is not possible. */
bool hfn_timed_request_hooks(hfn_attachment *a, hfn_mirror *m);
/* After the commit: the replacements are in place. */
hotfn_status hfn_timed_check_hooks(const hfn_attachment *a, hotfn_error *err);
/* Does the core learn of it when the program limits its system calls?  After the commit. */
bool hfn_timed_sees_filters(const hfn_attachment *a);
/* Will the core replace the function with this index? */
bool hfn_timed_is_replaced(const hfn_mirror *m, uint32_t function);
/* Write the addresses of prctl and syscall, which the core reads. */
bool hfn_timed_write_originals(const hfn_attachment *a);
/* Write the list of the stubs and their tables, which the core reads. */
bool hfn_timed_write_tables(const hfn_attachment *a);

#endif
