/* SPDX-License-Identifier: MIT */
/* Pages of this process.  Views and private allocations can only be released whole; a part of a
 * private allocation loses its memory and stays reserved. */
#include "os/memory.h"

#include "os/threads.h"
#include "os/windows/nt.h"

uint64_t hfn_os_page_bytes(void)
{
    return 4096; /* on x86 and ARM64: SYSTEM_INFO.dwPageSize */
}

void *hfn_os_map_pages(uint64_t byte_count)
{
    return byte_count <= SIZE_MAX
               ? VirtualAlloc(NULL, (SIZE_T)byte_count, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE)
               : NULL;
}

bool hfn_os_can_unmap_parts(void)
{
    return false;
}

typedef struct replacement {
    void *at;
    SIZE_T byte_count;
    bool is_done;
} replacement;

static void replace_view(void *user)
{
    replacement *r = user;

    NtUnmapViewOfSection(HFN_OWN_PROCESS, r->at);
    r->is_done = NtAllocateVirtualMemory(HFN_OWN_PROCESS, &r->at, 0, &r->byte_count,
                                         MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE) >= 0;
}

static uint64_t keep_pc(void *user, uint64_t pc)
{
    (void)user;
    return pc;
}

/* A view goes as a whole.  The other threads are stopped, because they may store to the pages
 * meanwhile. */
bool hfn_os_replace_pages(void *at, uint64_t byte_count)
{
    enum { STOP_NS = 1000000000 };
    replacement r = { at, (SIZE_T)byte_count, false };
    MEMORY_BASIC_INFORMATION info;

    return VirtualQuery(at, &info, sizeof info) != 0 && info.Type == MEM_MAPPED &&
           info.AllocationBase == at &&
           hfn_os_with_threads_stopped(STOP_NS, keep_pc, replace_view, &r) && r.is_done;
}

void hfn_os_unmap(uint64_t address, uint64_t byte_count)
{
    MEMORY_BASIC_INFORMATION info;
    void *at = (void *)(uintptr_t)address;

    if (VirtualQuery(at, &info, sizeof info) == 0) {
        return;
    }
    if (info.Type == MEM_MAPPED) {
        NtUnmapViewOfSection(GetCurrentProcess(), at);
    } else if (at == info.AllocationBase && byte_count >= info.RegionSize) {
        VirtualFree(at, 0, MEM_RELEASE);
    } else {
        VirtualFree(at, (SIZE_T)byte_count, MEM_DECOMMIT);
    }
}

void hfn_os_forbid_writing(void *at, uint64_t byte_count)
{
    DWORD before;

    VirtualProtect(at, (SIZE_T)byte_count, PAGE_READONLY, &before);
}

void hfn_os_prefault_pages(const void *at, uint64_t byte_count)
{
    (void)at;
    (void)byte_count;
}

void hfn_os_exclude_from_dumps(const void *at, uint64_t byte_count)
{
    (void)at;
    (void)byte_count;
}

uint64_t hfn_os_get_memory_limit(void)
{
    MEMORYSTATUSEX status = { .dwLength = sizeof status };

    return GlobalMemoryStatusEx(&status) ? status.ullTotalPhys : UINT64_MAX;
}
