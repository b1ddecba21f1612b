/* SPDX-License-Identifier: MIT */
/* Two clocks: wall time for records, monotonic time for waiting and measuring. */
#include "os/os.h"

#include <time.h>

static uint64_t read_ns(clockid_t clock)
{
    struct timespec now = { 0, 0 };

    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t hfn_os_wall_ns(void)
{
    return read_ns(CLOCK_REALTIME);
}

uint64_t hfn_os_monotonic_ns(void)
{
    return read_ns(CLOCK_MONOTONIC);
}
