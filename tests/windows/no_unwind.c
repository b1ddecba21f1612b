/* SPDX-License-Identifier: MIT */
/* Replaces the registration of the stubs' unwind tables in a special agent.  Under it a program
 * that unwinds through timed calls must fail, which proves that the tables are needed. */
#include "os/modules.h"

void __wrap_hfn_os_add_unwind_table(const void *functions, uint32_t count, uint64_t base);
void __wrap_hfn_os_add_unwind_table(const void *functions, uint32_t count, uint64_t base)
{
    (void)functions, (void)count, (void)base;
}
