/* SPDX-License-Identifier: MIT */
/* HOT PATH: what the core notes of prctl and syscall.  A thread that limits its system calls
 * (seccomp) could be killed for the next call that a hook makes, so the calls that its filter
 * forbids are not made from then on. */
#include "counters/core/system_calls.h"

#include "counters/thread_row.h"
#include "counters/timing/waiting.h"
#include "os/hot_path.h"

#include <stdint.h>

/* The addresses of the originals, to which arch/x86/system_calls_entry.S jumps. */
uint64_t hfn_next_prctl, hfn_next_syscall;

/* Called before prctl and seccomp with the number of the system call and its first arguments. */
void hfn_core_note_call(long number, unsigned long a, unsigned long b, unsigned long c);
void hfn_core_note_call(long number, unsigned long a, unsigned long b, unsigned long c)
{
    const unsigned long arguments[3] = { a, b, c };
    uint32_t before = __atomic_load_n(&hfn_rows.forbidden, __ATOMIC_RELAXED);
    uint32_t forbidden = hfn_os_hot_find_forbidden(number, arguments, before);

    __atomic_fetch_or(&hfn_rows.forbidden, forbidden, __ATOMIC_RELAXED);
    if ((forbidden & HFN_CALLS_TIME) && hfn_time_is_on()) {
        hfn_waiting_stop(hfn_time_now());
    }
}
