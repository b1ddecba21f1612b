/* SPDX-License-Identifier: MIT */
/* HOT PATH: the core.  Apart from the stubs, it is the only code of hotfn in a process to which
 * hotfn was attached: the slow path of thread_row.c, the probes of timed calls (timing/), and what
 * unwinders need (os/linux/core_unwind.c), linked without a C library, without relocations and
 * without thread-local variables.  The launcher maps it and fills its variables (launch/attach). */
#include "counters/thread_row.h"
#include "counters/timing/engine.h"

int64_t hfn_core_word_at;
uint64_t hfn_core_frames;

uint64_t hfn_core_thread_pointer(void);

uint64_t hfn_core_word_address(void)
{
    return hfn_core_thread_pointer() + (uint64_t)hfn_core_word_at;
}
