/* SPDX-License-Identifier: MIT */
/* prctl, in the agent only.  A thread that gives up the right to read the processor's counter (PR_TSC_SIGSEGV), or
 * to make nearly all system calls (SECCOMP_MODE_STRICT, which takes the counter too), would be killed by the
 * next timed call.  So the clock is left alone before the kernel hears of it; all goes on to the prctl behind. */
#include "counters/timing.h"

#include <dlfcn.h>
#include <linux/seccomp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>

#define EXPORT __attribute__((visibility("default")))

typedef int (*prctl_fn)(int option, ...);

static prctl_fn next_prctl;

/* Before anybody can call it. */
__attribute__((constructor(101))) static void find_next(void)
{
    void *found = dlsym(RTLD_NEXT, "prctl");
    memcpy(&next_prctl, &found, sizeof found); /* ISO C has no cast for it */
}

static bool forbids_clock(int option, unsigned long how)
{
    return (option == PR_SET_TSC && how == PR_TSC_SIGSEGV) ||
           (option == PR_SET_SECCOMP && how == SECCOMP_MODE_STRICT);
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
    bool forbids = forbids_clock(option, words[0]);
    uint64_t stopped_at = 0;
    uint32_t clock = forbids ? hfn_timing_stop_clock(&stopped_at) : 0;
    int answer = next_prctl(option, words[0], words[1], words[2], words[3]);
    if (forbids && answer != 0) {
        hfn_timing_go_on(clock);
    } else if (forbids) {
        hfn_timing_tell_stop(stopped_at);
    }
    return answer;
}
