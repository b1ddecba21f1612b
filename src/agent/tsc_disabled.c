/* SPDX-License-Identifier: MIT */
/* Interposes prctl and syscall, in the agent only.
 *
 * A thread that limits its system calls (seccomp) could be killed for the next call that a hook
 * makes, so the calls that its filter forbids are not made from then on.
 *
 * A thread that disables the processor's counter for itself (PR_TSC_SIGSEGV, or strict mode) would
 * be killed by its next timed call.  So timing stops reading the counter before the system call is
 * made.  Code that makes such a system call by its own instruction is found when the code is
 * analysed (arch/x86/disables_tsc.c).
 *
 * Every call is passed to the next definition. */
#include "counters/thread_row.h"
#include "counters/timing/timing.h"
#include "os/hot_path.h"
#include "session/session.h"

#include <dlfcn.h>
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

/* Called by arch/x86/syscall_entry.S. */
HIDDEN syscall_fn hfn_next_syscall;
HIDDEN long hfn_careful_syscall(long number, unsigned long a, unsigned long b, unsigned long c,
                                unsigned long d, unsigned long e);

/* Runs before any call of prctl or syscall. */
__attribute__((constructor(101))) static void find_next_definitions(void)
{
    void *found = dlsym(RTLD_NEXT, "prctl");
    memcpy(&next_prctl, &found, sizeof found); /* ISO C has no cast from void * to a function */
    found = dlsym(RTLD_NEXT, "syscall");
    memcpy(&hfn_next_syscall, &found, sizeof found);
}

/* From now on no hook makes a system call that would end the program.  If the program's call fails,
 * this stays so. */
static void forbid_calls(long number, const unsigned long words[3])
{
    uint32_t before = __atomic_load_n(&hfn_rows.forbidden, __ATOMIC_RELAXED);
    uint32_t forbidden = hfn_os_hot_find_forbidden(number, words, before);

    if (forbidden != before) {
        hfn_session_forbid_calls(forbidden);
    }
}

static uint32_t stop_clock(bool disables, uint64_t *stopped_at)
{
    return disables ? hfn_timing_stop_clock(stopped_at) : 0;
}

static void finish_stop(bool disables, uint32_t clock, uint64_t stopped_at, bool failed)
{
    if (disables && failed) {
        hfn_timing_restart_clock(clock);
    } else if (disables) {
        hfn_timing_record_stop(stopped_at);
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
    const unsigned long arguments[3] = { (unsigned long)option, words[0], words[1] };
    forbid_calls(SYS_prctl, arguments);
    bool disables = hfn_os_hot_disables_tsc(SYS_prctl, (unsigned long)option, words[0]);
    uint64_t stopped_at = 0;
    uint32_t clock = stop_clock(disables, &stopped_at);
    int answer = next_prctl(option, words[0], words[1], words[2], words[3]);
    finish_stop(disables, clock, stopped_at, answer != 0);
    return answer;
}

/* prctl and seccomp, the only system calls that reach this function, take at most five words.  If
 * the caller passed fewer, the other words are unspecified, and the kernel ignores them. */
long hfn_careful_syscall(long number, unsigned long a, unsigned long b, unsigned long c,
                         unsigned long d, unsigned long e)
{
    const unsigned long arguments[3] = { a, b, c };
    forbid_calls(number, arguments);
    bool disables = hfn_os_hot_disables_tsc(number, a, b);
    uint64_t stopped_at = 0;
    uint32_t clock = stop_clock(disables, &stopped_at);
    long answer = hfn_next_syscall(number, a, b, c, d, e);
    finish_stop(disables, clock, stopped_at, answer != 0);
    return answer;
}
