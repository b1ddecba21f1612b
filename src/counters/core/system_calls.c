/* SPDX-License-Identifier: MIT */
/* HOT PATH: the replacements of prctl and syscall in the core, while calls are timed.  A thread
 * that limits its system calls (seccomp) could be killed by the next reading of its processor time,
 * so the readings end before it does so.  Everything else is passed to the originals. */
#include "counters/core/system_calls.h"

#include "counters/timing/waiting.h"
#include "os/hot_path.h"

#include <stdarg.h>
#include <stdint.h>
#include <sys/syscall.h>

typedef int (*prctl_fn)(int option, ...);
typedef long (*system_call_fn)(long number, ...);

uint64_t hfn_next_prctl, hfn_next_syscall;
extern uint64_t hfn_core_frames;

int hfn_core_prctl(int option, ...);
/* Called by arch/x86/syscall_entry.S. */
long hfn_careful_syscall(long number, unsigned long a, unsigned long b, unsigned long c,
                         unsigned long d, unsigned long e);

static void note_call(long number, unsigned long option)
{
    if (hfn_os_hot_limits_system_calls(number, option) && hfn_time_is_on()) {
        hfn_waiting_stop(hfn_time_now());
    }
}

/* The core stays mapped while an original runs, as it does for the frame of a call. */
static void count_caller(int64_t change)
{
    __atomic_fetch_add(&hfn_core_frames, (uint64_t)change, __ATOMIC_RELAXED);
}

int hfn_core_prctl(int option, ...)
{
    unsigned long words[4];
    va_list more;
    int answer;

    va_start(more, option);
    for (int i = 0; i < 4; i++) {
        words[i] = va_arg(more, unsigned long);
    }
    va_end(more);
    note_call(SYS_prctl, (unsigned long)option);
    count_caller(1);
    answer = ((prctl_fn)(uintptr_t)hfn_next_prctl)(option, words[0], words[1], words[2], words[3]);
    count_caller(-1);
    return answer;
}

/* prctl and seccomp, the only calls that reach this function, take at most five words. */
long hfn_careful_syscall(long number, unsigned long a, unsigned long b, unsigned long c,
                         unsigned long d, unsigned long e)
{
    long answer;

    note_call(number, a);
    count_caller(1);
    answer = ((system_call_fn)(uintptr_t)hfn_next_syscall)(number, a, b, c, d, e);
    count_caller(-1);
    return answer;
}
