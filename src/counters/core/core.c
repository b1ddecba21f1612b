/* SPDX-License-Identifier: MIT */
/* HOT PATH: the core.  Apart from the stubs, it is the only code of hotfn in a process to which
 * hotfn was attached: the slow path of thread_row.c, the probes of timed calls (timing/), and what
 * unwinders need (os/linux/core_unwind.c), linked without a C library, without relocations and
 * without thread-local variables.  The launcher maps it and fills its variables (launch/attach). */
#include "counters/thread_row.h"
#include "counters/timing/engine.h"

int64_t hfn_core_word_at;
/* The gs base that leads to row 0; 8 * n must be added for row n.  0: hfn_core_word_at is used. */
uint64_t hfn_core_gs_rows;
uint64_t hfn_core_frames;

uint64_t hfn_core_thread_pointer(void);
void hfn_core_set_gs_base(uint64_t base);

uint64_t hfn_core_word_address(void)
{
    return hfn_core_gs_rows ? 0 : hfn_core_thread_pointer() + (uint64_t)hfn_core_word_at;
}

void hfn_core_set_gs_row(uint64_t index)
{
    hfn_core_set_gs_base(hfn_core_gs_rows + 8 * index);
}
