/* SPDX-License-Identifier: MIT */
/* Linked into an agent in place of the call that registers the unwind tables of stubs: a program
 * that unwinds through timed calls must then fail. */
#include "os/modules.h"

void __wrap_hfn_os_add_unwind_table(const void *functions, uint32_t count, uint64_t base);
void __wrap_hfn_os_add_unwind_table(const void *functions, uint32_t count, uint64_t base)
{
    (void)functions, (void)count, (void)base;
}
