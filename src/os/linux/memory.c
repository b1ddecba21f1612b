/* SPDX-License-Identifier: MIT */
/* Pages, mapped files and shared memory (memfd).  Calls that threads of the program may
 * make preserve errno. */
#include "os/memory.h"

#include "os/linux/raw.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22 /* Linux 5.14 */
#endif

enum { SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL };

void *hfn_os_map_pages(uint64_t byte_count)
{
    return (void *)(uintptr_t)hfn_raw_map(0, byte_count, PROT_READ | PROT_WRITE,
                                          MAP_PRIVATE | MAP_ANONYMOUS, -1);
}

bool hfn_os_replace_pages(void *at, uint64_t byte_count)
{
    return hfn_raw_map(hfn_raw_pointer(at), byte_count, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1) != 0;
}

void hfn_os_forbid_writing(void *at, uint64_t byte_count)
{
    hfn_raw_syscall3(SYS_mprotect, hfn_raw_pointer(at), byte_count, PROT_READ);
}

void hfn_os_prefault_pages(const void *at, uint64_t byte_count)
{
    hfn_raw_syscall3(SYS_madvise, hfn_raw_pointer(at), byte_count, MADV_POPULATE_READ);
}

void hfn_os_exclude_from_dumps(const void *at, uint64_t byte_count)
{
    hfn_raw_syscall3(SYS_madvise, hfn_raw_pointer(at), byte_count, MADV_DONTDUMP);
}

hfn_os_error hfn_os_map_file(void **out, hfn_os_file file, uint64_t offset, uint64_t byte_count,
                             uint32_t flags, uint64_t wanted)
{
    bool writes = flags & HFN_OS_MAP_WRITE, shares = writes || (flags & HFN_OS_MAP_LATEST);
    void *at;

    if (byte_count > SIZE_MAX) {
        return ENOMEM;
    }
    at =
        mmap((void *)(uintptr_t)wanted, (size_t)byte_count, PROT_READ | (writes ? PROT_WRITE : 0),
             (shares ? MAP_SHARED : MAP_PRIVATE) | (flags & HFN_OS_MAP_PREFAULT ? MAP_POPULATE : 0),
             (int)file.handle, (off_t)offset);
    if (at == MAP_FAILED) {
        return errno;
    }
    *out = at;
    return 0;
}

hfn_os_error hfn_os_create_shared(hfn_os_file *out, const char *name, uint64_t byte_count)
{
    hfn_os_file made = { memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING) };
    hfn_os_error error = hfn_os_is_open(made) ? hfn_os_set_file_size(made, byte_count) : errno;

    if (error == 0) {
        *out = made;
    } else if (hfn_os_is_open(made)) {
        hfn_os_close_file(made);
    }
    return error;
}

hfn_os_error hfn_os_seal_shared(hfn_os_file file)
{
    return fcntl((int)file.handle, F_ADD_SEALS, SEALS) == 0 ? 0 : errno;
}

bool hfn_os_is_sealed(hfn_os_file file)
{
    int seals = fcntl((int)file.handle, F_GET_SEALS);

    return seals > 0 && (seals & F_SEAL_SHRINK);
}

bool hfn_os_maps_shared(const char *name)
{
    char line[8192], wanted[256];
    bool found = false;
    FILE *maps = fopen("/proc/self/maps", "re");

    snprintf(wanted, sizeof wanted, "/memfd:%s", name);
    while (maps && !found && fgets(line, sizeof line, maps)) {
        found = strstr(line, wanted) != NULL;
    }
    if (maps) {
        fclose(maps);
    }
    return found;
}

bool hfn_os_can_unmap_parts(void)
{
    return true;
}

/* The kernel gives memory at the first store. */
hfn_os_error hfn_os_commit_shared(hfn_os_file file, uint64_t offset, uint64_t byte_count)
{
    (void)file;
    (void)offset;
    (void)byte_count;
    return 0;
}
