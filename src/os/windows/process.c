/* SPDX-License-Identifier: MIT */
/* This process, and whether others exist. */
#include "os/process.h"

#include "os/windows/nt.h"

#include <string.h>

uint32_t hfn_os_get_process_id(void)
{
    return GetCurrentProcessId();
}

bool hfn_os_process_is_gone(uint32_t pid)
{
    HANDLE process = OpenProcess(SYNCHRONIZE, FALSE, pid);
    bool gone;

    if (!process) {
        return GetLastError() == ERROR_INVALID_PARAMETER;
    }
    gone = WaitForSingleObject(process, 0) == WAIT_OBJECT_0;
    CloseHandle(process);
    return gone;
}

static uint64_t join_time(FILETIME time)
{
    return (uint64_t)time.dwHighDateTime << 32 | time.dwLowDateTime;
}

static bool is_wine(void)
{
    return GetProcAddress(GetModuleHandleW(L"ntdll.dll"), "wine_get_version") != NULL;
}

/* Wine has no times of other processes, but those of their threads; the times of threads that have
 * ended are missing. */
static uint64_t sum_thread_times(HANDLE process)
{
    FILETIME created, ended, kernel, user;
    HANDLE previous = NULL, next;
    uint64_t units = 0;

    while (NtGetNextThread(process, previous, THREAD_QUERY_INFORMATION, 0, 0, &next) >= 0) {
        if (previous) {
            NtClose(previous);
        }
        previous = next;
        if (GetThreadTimes(next, &created, &ended, &kernel, &user)) {
            units += join_time(kernel) + join_time(user);
        }
    }
    if (previous) {
        NtClose(previous);
    }
    return units;
}

uint64_t hfn_os_get_process_cpu_ns(uint32_t pid)
{
    FILETIME created, ended, kernel, user;
    HANDLE process = OpenProcess(PROCESS_QUERY_INFORMATION, FALSE, pid);
    uint64_t units = 0;

    if (process && is_wine()) {
        units = sum_thread_times(process);
    } else if (process && GetProcessTimes(process, &created, &ended, &kernel, &user)) {
        units = join_time(kernel) + join_time(user);
    }
    if (process) {
        CloseHandle(process);
    }
    return units * 100;
}

const char *hfn_os_get_program_path(void)
{
    static char path[4096]; /* every writer writes the same text */
    wchar_t name[HFN_UTF16_PATH];
    DWORD length = GetModuleFileNameW(NULL, name, HFN_UTF16_PATH);

    if (length == 0 || length >= HFN_UTF16_PATH || !hfn_from_utf16(name, path, sizeof path)) {
        return "";
    }
    return path;
}

bool hfn_os_get_program_name(char *out, size_t capacity)
{
    return hfn_os_resolve_path(hfn_os_get_program_path(), out, capacity);
}

/* Windows keeps no path by which the program was started, apart from that of its file. */
bool hfn_os_get_start_path(char *out, size_t capacity, bool *is_script)
{
    (void)out;
    (void)capacity;
    (void)is_script;
    return false;
}

void hfn_os_get_working_folder(char *out, size_t capacity)
{
    wchar_t name[HFN_UTF16_PATH];
    DWORD length = GetCurrentDirectoryW(HFN_UTF16_PATH, name);

    if (capacity > 0 &&
        (length == 0 || length >= HFN_UTF16_PATH || !hfn_from_utf16(name, out, capacity))) {
        out[0] = 0;
    }
}

uint32_t hfn_os_count_processors(void)
{
    SYSTEM_INFO info;

    GetSystemInfo(&info);
    return info.dwNumberOfProcessors;
}

uint32_t hfn_os_count_allowed_processors(void)
{
    DWORD_PTR own = 0, all = 0;

    return GetProcessAffinityMask(GetCurrentProcess(), &own, &all) && own != 0
               ? (uint32_t)__builtin_popcountll(own)
               : hfn_os_count_processors();
}

/* Job objects may have limits, which no call reports to their processes. */
bool hfn_os_has_processor_quota(void)
{
    return false;
}

uint64_t hfn_os_get_address_limit(void)
{
    return sizeof(void *) == 8 ? UINT64_MAX : UINT64_C(1) << 31;
}

/* SystemFunction036, which seeds from the kernel, would need another library: time, ids and
 * addresses make names and record ids unique, and nothing here needs a secret. */
bool hfn_os_get_random(void *out, size_t byte_count)
{
    LARGE_INTEGER now;
    FILETIME wall;
    uint64_t state;
    uint8_t *at = out;

    QueryPerformanceCounter(&now);
    GetSystemTimePreciseAsFileTime(&wall);
    state = (uint64_t)now.QuadPart * UINT64_C(0x9e3779b97f4a7c15) ^ join_time(wall) ^
            (uint64_t)GetCurrentProcessId() << 40 ^ (uint64_t)GetCurrentThreadId() << 20 ^
            (uint64_t)(uintptr_t)&state;
    for (size_t i = 0; i < byte_count; i++) { /* splitmix64 */
        uint64_t mixed;

        state += UINT64_C(0x9e3779b97f4a7c15);
        mixed = (state ^ state >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
        mixed = (mixed ^ mixed >> 27) * UINT64_C(0x94d049bb133111eb);
        at[i] = (uint8_t)(mixed >> 56);
    }
    return true;
}

bool hfn_os_on_fork(void (*before)(void), void (*after_in_parent)(void),
                    void (*after_in_child)(void))
{
    (void)before;
    (void)after_in_parent;
    (void)after_in_child;
    return true; /* no process of this system forks */
}
