/* SPDX-License-Identifier: MIT */
/* The functions of the C library by which a program limits its system calls (seccomp). */
#ifndef HFN_COUNTERS_SYSTEM_CALLS_H
#define HFN_COUNTERS_SYSTEM_CALLS_H

#define HFN_PRCTL_NAME "prctl"
#define HFN_SYSCALL_NAME "syscall"

#endif
