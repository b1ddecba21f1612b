/* SPDX-License-Identifier: MIT */
/* No program can be found and no child can be started. */
#include "os/child.h"

#include <errno.h>

hfn_os_error hfn_os_find_program(const char *name, char path[HFN_OS_PATH_BYTES])
{
    (void)name;
    path[0] = 0;
    return ENOENT;
}

bool hfn_os_each_library(const char *loader, const char *program, hfn_os_library_fn visit,
                         void *user)
{
    (void)loader;
    (void)program;
    (void)visit;
    (void)user;
    return false;
}

bool hfn_os_is_folder(const char *path)
{
    (void)path;
    return false;
}

void hfn_os_get_temporary_folder(char path[HFN_OS_PATH_BYTES])
{
    path[0] = 0;
}

bool hfn_os_is_readable(const char *path)
{
    (void)path;
    return false;
}

bool hfn_os_gains_rights(const char *path)
{
    (void)path;
    return false;
}

bool hfn_os_identify_file(const char *path, uint64_t *device, uint64_t *inode)
{
    (void)path;
    (void)device;
    (void)inode;
    return false;
}

bool hfn_os_own_path(char path[HFN_OS_PATH_BYTES])
{
    path[0] = 0;
    return false;
}

bool hfn_os_can_share_files(void)
{
    return false;
}

void hfn_os_shared_path(int fd, char *path, size_t path_bytes)
{
    (void)fd;
    if (path_bytes > 0) {
        path[0] = 0;
    }
}

const char *hfn_os_platform(void)
{
    return "";
}

hfn_os_error hfn_os_child_start(hfn_os_child *child, const hfn_os_child_options *options,
                                const hotfn_env *env)
{
    (void)child;
    (void)options;
    (void)env;
    return ENOSYS;
}

bool hfn_os_child_wait(const hfn_os_child *child, uint64_t timeout_ns)
{
    (void)child;
    (void)timeout_ns;
    return false;
}

void hfn_os_child_reap(hfn_os_child *child)
{
    (void)child;
}

void hfn_os_child_kill(hfn_os_child *child)
{
    (void)child;
}

void hfn_os_child_release_signals(hfn_os_child *child)
{
    (void)child;
}

bool hfn_os_process_maps_file(uint32_t pid, int fd)
{
    (void)pid;
    (void)fd;
    return false;
}
