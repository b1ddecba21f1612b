/* SPDX-License-Identifier: MIT */
/* Every clock shows 0. */
#include "os/clock.h"

uint64_t hfn_os_wall_ns(void)
{
    return 0;
}

uint64_t hfn_os_monotonic_ns(void)
{
    return 0;
}

uint64_t hfn_os_raw_ns(void)
{
    return 0;
}

uint64_t hfn_os_thread_cpu_ns(void)
{
    return 0;
}

void hfn_os_sleep(uint32_t ns)
{
    (void)ns;
}

bool hfn_os_ticks_are_steady(void)
{
    return false;
}

bool hfn_os_may_read_ticks(void)
{
    return false;
}
