/* SPDX-License-Identifier: MIT */
/* Clocks: wall time for records, monotonic time for waiting and measuring, and whether the
 * processor's counter can be used as a clock. */
#include "os/os.h"

#include "os/linux/raw.h"

#include <fcntl.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

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

uint64_t hfn_os_thread_cpu_ns(void)
{
    return read_ns(CLOCK_THREAD_CPUTIME_ID);
}

uint64_t hfn_os_raw_ns(void)
{
    return read_ns(CLOCK_MONOTONIC_RAW);
}

void hfn_os_sleep(uint32_t ns)
{
    long wait[2] = { 0, (long)ns };

    hfn_raw_syscall3(SYS_nanosleep, hfn_raw_pointer(wait), 0, 0);
}

/* Intel SDM vol. 3, 18.17.1: invariant TSC; CPUID leaf 0x80000007, EDX bit 8. */
static bool is_counter_invariant(void)
{
#if defined(__x86_64__)
    uint32_t a, b, c, d = 0;

    return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d & 1u << 8);
#else
    return true; /* Arm ARM, Generic Timer: a system counter at a fixed frequency */
#endif
}

/* Linux replaces the TSC (by "hpet" or "acpi_pm") when it detects an error in it.  kvm-clock and
 * Hyper-V's are TSCs with an offset. */
static bool is_counter_trusted(void)
{
    char name[32] = "";
    int fd = open("/sys/devices/system/clocksource/clocksource0/current_clocksource",
                  O_RDONLY | O_CLOEXEC);
    ssize_t length;

    if (fd < 0) {
        return true;
    }
    length = read(fd, name, sizeof name - 1);
    close(fd);
    return length <= 0 || !(strncmp(name, "hpet", 4) == 0 || strncmp(name, "acpi_pm", 7) == 0 ||
                            strncmp(name, "jiffies", 7) == 0 || strncmp(name, "refined", 7) == 0);
}

bool hfn_os_may_read_ticks(void)
{
#if defined(PR_GET_TSC)
    int how = PR_TSC_ENABLE;

    return prctl(PR_GET_TSC, &how) != 0 || how == PR_TSC_ENABLE;
#else
    return true;
#endif
}

bool hfn_os_ticks_are_steady(void)
{
    return is_counter_invariant() && is_counter_trusted();
}
