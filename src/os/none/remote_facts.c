/* SPDX-License-Identifier: MIT */
/* Other processes cannot be read. */
#include "os/remote.h"

bool hfn_os_remote_each_module(uint32_t pid, hfn_remote_module_fn visit, void *user)
{
    (void)pid;
    (void)visit;
    (void)user;
    return false;
}

size_t hfn_os_remote_read_command(uint32_t pid, char *out, size_t capacity)
{
    (void)pid;
    (void)out;
    (void)capacity;
    return 0;
}

bool hfn_os_remote_wait_end(uint32_t pid, uint64_t timeout_ns)
{
    (void)pid;
    (void)timeout_ns;
    return true;
}

bool hfn_os_remote_find_record(uint32_t pid, char *path, size_t capacity)
{
    (void)pid;
    (void)path;
    (void)capacity;
    return false;
}

bool hfn_os_remote_names_record(void)
{
    return false;
}
