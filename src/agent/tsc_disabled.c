/* SPDX-License-Identifier: MIT */
/* prctl and syscall, in the agent only.  A thread that gives up the right to read the processor's counter
 * (PR_TSC_SIGSEGV), or to make nearly all system calls (SECCOMP_MODE_STRICT, which takes the counter too), would be
 * killed by the next timed call.  So the clock is left alone before the kernel hears of it; all goes on to the functions
 * behind.  What makes such calls by an instruction of its own is found when its code is read
 * (arch/x86/disables_tsc.c). */
#include "counters/timing/timing.h"

#include <dlfcn.h>
#include <linux/seccomp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#define EXPORT __attribute__((visibility("default")))
#define HIDDEN __attribute__((visibility("hidden")))

typedef int (*prctl_fn)(int option, ...);
typedef long (*syscall_fn)(long number, ...);

static prctl_fn next_prctl;

/* What x86/syscall_entry.S leads to. */
HIDDEN syscall_fn hfn_next_syscall;
HIDDEN long hfn_careful_syscall(long number, unsigned long a, unsigned long b, unsigned long c,
                                unsigned long d, unsigned long e);

/* Before anybody can call them. */
__attribute__((constructor(101))) static void find_next(void)
{
    void *found = dlsym(RTLD_NEXT, "prctl");
    memcpy(&next_prctl, &found, sizeof found); /* ISO C has no cast for it */
    found = dlsym(RTLD_NEXT, "syscall");
    memcpy(&hfn_next_syscall, &found, sizeof found);
}

static bool disables_tsc(long number, unsigned long option, unsigned long how)
{
    if (number == SYS_seccomp) {
        return (unsigned)option == SECCOMP_SET_MODE_STRICT;
    }
    return number == SYS_prctl && (((int)option == PR_SET_TSC && (unsigned)how == PR_TSC_SIGSEGV) ||
                                   ((int)option == PR_SET_SECCOMP && how == SECCOMP_MODE_STRICT));
}

static uint32_t begin(bool forbids, uint64_t *stopped_at)
{
    return forbids ? hfn_timing_stop_clock(stopped_at) : 0;
}

static void end(bool forbids, uint32_t clock, uint64_t stopped_at, bool failed)
{
    if (forbids && failed) {
        hfn_timing_go_on(clock);
    } else if (forbids) {
        hfn_timing_tell_stop(stopped_at);
    }
}

EXPORT int prctl(int option, ...)
{
    unsigned long words[4];
    va_list more;
    va_start(more, option);
    for (int i = 0; i < 4; i++) {
        words[i] = va_arg(more, unsigned long);
    }
    va_end(more);
    bool forbids = disables_tsc(SYS_prctl, (unsigned long)option, words[0]);
    uint64_t stopped_at = 0;
    uint32_t clock = begin(forbids, &stopped_at);
    int answer = next_prctl(option, words[0], words[1], words[2], words[3]);
    end(forbids, clock, stopped_at, answer != 0);
    return answer;
}

/* As many words as the two take; a caller that passed fewer has others of its own stand there, which are passed on. */
long hfn_careful_syscall(long number, unsigned long a, unsigned long b, unsigned long c,
                         unsigned long d, unsigned long e)
{
    bool forbids = disables_tsc(number, a, b);
    uint64_t stopped_at = 0;
    uint32_t clock = begin(forbids, &stopped_at);
    long answer = hfn_next_syscall(number, a, b, c, d, e);
    end(forbids, clock, stopped_at, answer != 0);
    return answer;
}
