/* SPDX-License-Identifier: MIT */
/* Clocks: the performance counter, and the system time since 1601 in units of 100 ns. */
#include "os/clock.h"

#include "os/windows/nt.h"

#include <cpuid.h>

#define UNITS_TO_1970 UINT64_C(116444736000000000)
#define NS_PER_S UINT64_C(1000000000)

static uint64_t join_time(FILETIME time)
{
    return (uint64_t)time.dwHighDateTime << 32 | time.dwLowDateTime;
}

uint64_t hfn_os_wall_ns(void)
{
    FILETIME now;

    GetSystemTimePreciseAsFileTime(&now);
    return (join_time(now) - UNITS_TO_1970) * 100;
}

uint64_t hfn_os_monotonic_ns(void)
{
    LARGE_INTEGER count, frequency;
    uint64_t ticks, per_s;

    QueryPerformanceCounter(&count);
    QueryPerformanceFrequency(&frequency);
    ticks = (uint64_t)count.QuadPart;
    per_s = (uint64_t)frequency.QuadPart;
    return ticks / per_s * NS_PER_S + ticks % per_s * NS_PER_S / per_s;
}

uint64_t hfn_os_raw_ns(void)
{
    return hfn_os_monotonic_ns();
}

uint64_t hfn_os_thread_cpu_ns(void)
{
    FILETIME created, ended, kernel, user;

    return GetThreadTimes(GetCurrentThread(), &created, &ended, &kernel, &user)
               ? (join_time(kernel) + join_time(user)) * 100
               : 0;
}

/* Sleep has a resolution of a millisecond at best. */
void hfn_os_sleep(uint32_t ns)
{
    Sleep((ns + 999999) / 1000000);
}

/* The time stamp counter is invariant: Intel SDM vol. 3, 18.17.1. */
bool hfn_os_ticks_are_steady(void)
{
    uint32_t a, b, c, d;

    return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d & 1u << 8);
}

bool hfn_os_may_read_ticks(void)
{
    return true; /* no call forbids it */
}
