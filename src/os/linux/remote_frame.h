/* SPDX-License-Identifier: MIT */
/* The way back of a thread that makes system calls for another process, which may be killed. */
#ifndef HFN_OS_LINUX_REMOTE_FRAME_H
#define HFN_OS_LINUX_REMOTE_FRAME_H

#include "os/linux/remote_parts.h"

/* Write to the stack of a stopped thread a frame that restores its registers, r->caller.registers,
 * and its mask of blocked signals.  restorer: address of code that calls rt_sigreturn.  Returns the
 * stack pointer that leads to it, where a `ret` jumps to the restorer; 0: the stack has no room. */
uint64_t hfn_linux_write_frame(const hfn_remote *r, uint32_t tid, uint64_t restorer,
                               uint64_t signals);

#endif
