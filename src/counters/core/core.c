/* SPDX-License-Identifier: MIT */
/* HOT PATH: the core.  Apart from the stubs, it is the only code of hotfn in a process to which
 * hotfn was attached.  It is the slow path of thread_row.c, linked without a C library, without
 * relocations and without thread-local variables.  The launcher maps it and fills hfn_rows
 * (launch/attach). */
#include "counters/thread_row.h"
#include "counters/timing/engine.h"

uint64_t hfn_core_thread_pointer(void);

/* Calls are counted only. */
hfn_time_engine hfn_time;

void hfn_time_begin_row(uint8_t *row, uint32_t thread)
{
    (void)row, (void)thread;
}

uint64_t hfn_core_word_address(void)
{
    return hfn_core_thread_pointer() + (uint64_t)hfn_rows.word_at;
}
