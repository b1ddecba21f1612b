/* SPDX-License-Identifier: MIT */
/* Queries about this process and about others.  Those that run in the program's threads preserve
 * errno. */
#include "os/process.h"

#include "os/linux/raw.h"

#include <pthread.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

uint32_t hfn_os_get_process_id(void)
{
    return (uint32_t)hfn_raw_syscall3(SYS_getpid, 0, 0, 0);
}

bool hfn_os_process_is_gone(uint32_t pid)
{
    return hfn_raw_syscall3(SYS_kill, pid, 0, 0) == -ESRCH;
}

uint64_t hfn_os_get_process_cpu_ns(uint32_t pid)
{
    struct timespec t;
    clockid_t clock;

    if (clock_getcpuclockid((pid_t)pid, &clock) != 0 || clock_gettime(clock, &t) != 0) {
        return 0;
    }
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

const char *hfn_os_get_program_path(void)
{
    return "/proc/self/exe";
}

bool hfn_os_get_program_name(char *out, size_t capacity)
{
    ssize_t length = capacity > 0 ? readlink(hfn_os_get_program_path(), out, capacity - 1) : -1;

    if (length <= 0) {
        return false;
    }
    out[length] = 0;
    return true;
}

/* If a script was started, AT_EXECFN is the path of the script, not that of its interpreter
 * (getauxval(3)). */
bool hfn_os_get_start_path(char *out, size_t capacity, bool *is_script)
{
    const char *path = (const char *)(uintptr_t)getauxval(AT_EXECFN);
    struct stat started, own;

    if (!path || strlen(path) >= capacity || stat(path, &started) != 0 ||
        stat(hfn_os_get_program_path(), &own) != 0) {
        return false;
    }
    memcpy(out, path, strlen(path) + 1);
    *is_script = started.st_dev != own.st_dev || started.st_ino != own.st_ino;
    return true;
}

void hfn_os_get_working_folder(char *out, size_t capacity)
{
    if (!getcwd(out, capacity) && capacity > 0) {
        out[0] = 0;
    }
}

uint32_t hfn_os_count_processors(void)
{
    long online = sysconf(_SC_NPROCESSORS_ONLN);

    return online > 0 ? (uint32_t)online : 1;
}

uint64_t hfn_os_get_address_limit(void)
{
    struct rlimit limit;
    bool limited = getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;

    return limited ? limit.rlim_cur : UINT64_MAX;
}

bool hfn_os_get_random(void *out, size_t byte_count)
{
    return getrandom(out, byte_count, GRND_NONBLOCK) == (ssize_t)byte_count;
}

bool hfn_os_on_fork(void (*before)(void), void (*after_in_parent)(void),
                    void (*after_in_child)(void))
{
    return pthread_atfork(before, after_in_parent, after_in_child) == 0;
}
