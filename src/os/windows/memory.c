/* SPDX-License-Identifier: MIT */
/* Pages of this process.  Views and private allocations can only be released whole; a part of a
 * private allocation loses its memory and stays reserved. */
#include "os/memory.h"

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

bool hfn_os_replace_pages(void *at, uint64_t byte_count)
{
    (void)at;
    (void)byte_count;
    return false;
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
