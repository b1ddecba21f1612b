/* SPDX-License-Identifier: MIT */
/* The processes that a process started, by the system's list of processes. */
#include "os/descendants.h"

#include "os/windows/nt.h"

#include <tlhelp32.h>

enum { MAX_PROCESSES = 4096 };

static uint64_t join_time(FILETIME time)
{
    return (uint64_t)time.dwHighDateTime << 32 | time.dwLowDateTime;
}

/* The parent's id may have been reused: a process that is older than its parent is a child of an
 * earlier process with that id. */
static uint64_t get_start(uint32_t pid)
{
    hfn_os_process_facts facts;

    return hfn_os_get_process_facts(pid, &facts) ? facts.start : 0;
}

static bool has_pid(const uint32_t *list, uint32_t count, uint32_t pid)
{
    for (uint32_t i = 0; i < count; i++) {
        if (list[i] == pid) {
            return true;
        }
    }
    return false;
}

/* Append the children of list[0..count) that the snapshot has; returns the new count. */
static uint32_t add_children(HANDLE snapshot, uint32_t list[MAX_PROCESSES], uint32_t count)
{
    PROCESSENTRY32W entry = { .dwSize = sizeof entry };

    for (BOOL more = Process32FirstW(snapshot, &entry); more && count < MAX_PROCESSES;
         more = Process32NextW(snapshot, &entry)) {
        if (has_pid(list, count, entry.th32ParentProcessID) &&
            !has_pid(list, count, entry.th32ProcessID) &&
            get_start(entry.th32ProcessID) >= get_start(entry.th32ParentProcessID)) {
            list[count++] = entry.th32ProcessID;
        }
    }
    return count;
}

void hfn_os_each_descendant(uint32_t pid, hfn_os_descendant_fn visit, void *user)
{
    static const size_t bytes = MAX_PROCESSES * sizeof(uint32_t);
    HANDLE snapshot = CreateToolhelp32Snapshot(TH32CS_SNAPPROCESS, 0);
    uint32_t *list = VirtualAlloc(NULL, bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
    uint32_t count = 1, before = 0;

    if (snapshot != INVALID_HANDLE_VALUE && list) {
        list[0] = pid;
        while (count > before) {
            before = count;
            count = add_children(snapshot, list, count);
        }
        for (uint32_t i = 1; i < count; i++) {
            visit(user, list[i]);
        }
    }
    if (list) {
        VirtualFree(list, 0, MEM_RELEASE);
    }
    if (snapshot != INVALID_HANDLE_VALUE) {
        CloseHandle(snapshot);
    }
}

/* Windows has no exec: a process runs one program, so out->program is constant. */
bool hfn_os_get_process_facts(uint32_t pid, hfn_os_process_facts *out)
{
    FILETIME created, ended, kernel, user;
    HANDLE process = OpenProcess(PROCESS_QUERY_LIMITED_INFORMATION, FALSE, pid);
    bool known = process && GetProcessTimes(process, &created, &ended, &kernel, &user);

    *out = (hfn_os_process_facts){ 0 };
    if (known) {
        out->start = join_time(created);
        out->program = 1;
        out->cpu_ns = (join_time(kernel) + join_time(user)) * 100;
    }
    if (process) {
        CloseHandle(process);
    }
    return known;
}

bool hfn_os_get_process_program(uint32_t pid, char *out, size_t capacity)
{
    HANDLE process = OpenProcess(PROCESS_QUERY_LIMITED_INFORMATION, FALSE, pid);
    wchar_t name[HFN_UTF16_PATH];
    DWORD units = HFN_UTF16_PATH;
    bool known = process && QueryFullProcessImageNameW(process, 0, name, &units) &&
                 hfn_from_utf16(name, out, capacity);

    for (char *c = out; known && *c; c++) {
        *c = *c == '\\' ? '/' : *c;
    }
    if (process) {
        CloseHandle(process);
    }
    return known;
}

bool hfn_os_get_ended_cpu_ns(uint32_t pid, uint64_t *own_ns, uint64_t *children_ns)
{
    hfn_os_process_facts facts;

    if (!hfn_os_get_process_facts(pid, &facts)) {
        return false;
    }
    *own_ns = facts.cpu_ns;
    *children_ns = 0;
    return true;
}
