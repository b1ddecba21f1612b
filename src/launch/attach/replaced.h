/* SPDX-License-Identifier: MIT */
/*
 * Functions of the C library that the core replaces in a process that was attached to.
 *
 * - prctl and syscall, for counted and timed calls: a program that limits its system calls
 *   (seccomp) could be killed for those that a thread's first hook makes, or for the reading of its
 *   processor time.  The core sees the filter first, and makes no call that it forbids
 *   (counters/core/system_calls.c).  If calls of these two are counted, they are not replaced.
 * - the two functions by which unwinders find tables, for timed calls (timing.h).
 */
#ifndef HFN_LAUNCH_ATTACH_REPLACED_H
#define HFN_LAUNCH_ATTACH_REPLACED_H

#include "launch/attach/attachment.h"

/* The files of a C library in which the functions are, for hfn_module_rules.replaced. */
extern const char *const hfn_replaced_libraries[];

/* Note which functions of the module will be replaced. */
void hfn_replaced_find(const hfn_attachment *a, hfn_mirror *m, const char *path);
/* Request their replacement; false: a function that unwinders need cannot be replaced. */
bool hfn_replaced_request(hfn_attachment *a, hfn_mirror *m);
/* Will the core replace the function with this index? */
bool hfn_replaced_has(const hfn_mirror *m, uint32_t function);
/* After the commit: does the copy of the code have the jump to the replacement? */
bool hfn_replaced_is_in_place(const hfn_mirror *m, const hfn_replacement *r);
/* After the commit: does the core learn of it when the program limits its system calls? */
bool hfn_replaced_sees_filters(const hfn_attachment *a);
/* The address in the target of something in the mirror. */
uint64_t hfn_replaced_to_target(const hfn_mirror *m, const void *local);
/* Write the addresses of the originals of prctl and syscall, which the core reads. */
bool hfn_replaced_write_originals(const hfn_attachment *a);

#endif
