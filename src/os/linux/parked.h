/* SPDX-License-Identifier: MIT */
/* Starts a child that stands at the entry point of its program (parked.c). */
#ifndef HFN_OS_LINUX_PARKED_H
#define HFN_OS_LINUX_PARKED_H

#include "os/child.h"

#include <signal.h>
#include <sys/types.h>

/* Start a child that stops at its exec, with this mask of signals; 0 or an errno. */
int hfn_linux_spawn_traced(pid_t *pid, const hfn_os_child_options *options,
                           const char **environment, const sigset_t *mask);
/* Let it go to its entry point; by the thread that has started it.  After an error the child does
 * not exist any more; ECHILD: it has ended before, or cannot be traced. */
hfn_os_error hfn_linux_park(hfn_os_child *child);

#endif
