/* SPDX-License-Identifier: MIT */
/* Signal frames, which hold the addresses at which threads resume when their signal handlers
 * return. */
#ifndef HFN_OS_LINUX_SIGNAL_FRAMES_H
#define HFN_OS_LINUX_SIGNAL_FRAMES_H

#include "os/os.h"

#include <signal.h>

/* The kernel's struct sigaction (asm/signal.h), which differs from libc's. */
typedef struct hfn_kernel_action {
    void (*handler)(int number, siginfo_t *info, void *context);
    unsigned long flags;
    void (*restorer)(void);
    uint64_t mask;
} hfn_kernel_action;

/* Return addresses of signal handlers, the first word of each signal frame.  libc has one
 * restorer. */
enum { HFN_RESTORERS_MAX = 8 };
typedef struct hfn_restorers {
    uint64_t addresses[HFN_RESTORERS_MAX];
    bool is_old[HFN_RESTORERS_MAX]; /* of a handler without SA_SIGINFO (i386) */
    uint32_t count;
} hfn_restorers;

/* Collect the restorers of all handlers that this process has installed. */
void hfn_linux_find_restorers(hfn_restorers *out);

/* Find the signal frames on the stack of a stopped thread, from sp on, and on the stacks that they
 * interrupted, and replace each PC in them by the result of adjust.  Nothing is allocated. */
void hfn_linux_adjust_frames(const hfn_restorers *restorers, uint64_t sp, hfn_adjust_pc_fn adjust,
                             void *user);

#endif
