/* SPDX-License-Identifier: MIT */
/* Threads inside of signal handlers: where they go on when those return stands in signal frames. */
#ifndef HFN_OS_LINUX_SIGNAL_FRAMES_H
#define HFN_OS_LINUX_SIGNAL_FRAMES_H

#include "os/os.h"

#include <signal.h>

/* As the kernel has it (asm/signal.h), not libc's. */
typedef struct hfn_kernel_action {
    void (*handler)(int number, siginfo_t *info, void *context);
    unsigned long flags;
    void (*restorer)(void);
    uint64_t mask;
} hfn_kernel_action;

/* What handlers return to: it stands at the begin of each signal frame.  libc has one. */
enum { HFN_RESTORERS_MAX = 8 };
typedef struct hfn_restorers {
    uint64_t addresses[HFN_RESTORERS_MAX];
    bool is_old[HFN_RESTORERS_MAX]; /* of a handler that asked for no siginfo (i386) */
    uint32_t count;
} hfn_restorers;

/* Of all handlers that this process has set. */
void hfn_linux_find_restorers(hfn_restorers *out);

/* Look for signal frames on the stack of a stopped thread, from sp on, and on the stacks that those
 * have interrupted; each PC in them becomes what adjust answers.  Nothing is allocated. */
void hfn_linux_adjust_frames(const hfn_restorers *restorers, uint64_t sp, hfn_adjust_pc_fn adjust,
                             void *user);

#endif
