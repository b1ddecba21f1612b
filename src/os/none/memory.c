/* SPDX-License-Identifier: MIT */
/* No page, file or shared memory can be mapped. */
#include "os/memory.h"
#include "os/none/unavailable.h"

uint64_t hfn_os_page_bytes(void)
{
    return 4096;
}

void *hfn_os_map_pages(uint64_t byte_count)
{
    (void)byte_count;
    return NULL;
}

bool hfn_os_map_at(uint64_t address, uint64_t byte_count)
{
    (void)address;
    (void)byte_count;
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
    (void)address;
    (void)byte_count;
}

void hfn_os_forbid_writing(void *at, uint64_t byte_count)
{
    (void)at;
    (void)byte_count;
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

hfn_os_error hfn_os_map_file(void **out, hfn_os_file file, uint64_t offset, uint64_t byte_count,
                             uint32_t flags, uint64_t wanted)
{
    (void)out;
    (void)file;
    (void)offset;
    (void)byte_count;
    (void)flags;
    (void)wanted;
    return UNAVAILABLE;
}

hfn_os_error hfn_os_create_shared(hfn_os_file *out, const char *name, uint64_t byte_count)
{
    (void)out;
    (void)name;
    (void)byte_count;
    return UNAVAILABLE;
}

hfn_os_error hfn_os_seal_shared(hfn_os_file file)
{
    (void)file;
    return UNAVAILABLE;
}

bool hfn_os_is_sealed(hfn_os_file file)
{
    (void)file;
    return false;
}

bool hfn_os_maps_shared(const char *name)
{
    (void)name;
    return false;
}

bool hfn_os_can_unmap_parts(void)
{
    return false;
}

hfn_os_error hfn_os_commit_shared(hfn_os_file file, uint64_t offset, uint64_t byte_count)
{
    (void)file;
    (void)offset;
    (void)byte_count;
    return UNAVAILABLE;
}

uint64_t hfn_os_get_memory_limit(void)
{
    return UINT64_MAX;
}
