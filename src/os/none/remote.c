/* SPDX-License-Identifier: MIT */
/* Other processes cannot be changed. */
#include "os/remote.h"
#include "os/none/unavailable.h"

bool hfn_os_can_change_others(void)
{
    return false;
}

hfn_os_error hfn_os_remote_open(hfn_remote *remote)
{
    (void)remote;
    return UNAVAILABLE;
}

void hfn_os_remote_close(hfn_remote *remote)
{
    (void)remote;
}

bool hfn_os_remote_was_replaced(const hfn_remote *remote)
{
    (void)remote;
    return false;
}

bool hfn_os_remote_read(const hfn_remote *remote, uint64_t address, void *out, uint32_t byte_count)
{
    (void)remote;
    (void)address;
    (void)out;
    (void)byte_count;
    return false;
}

bool hfn_os_remote_write(const hfn_remote *remote, uint64_t address, const void *bytes,
                         uint32_t byte_count)
{
    (void)remote;
    (void)address;
    (void)bytes;
    (void)byte_count;
    return false;
}

hfn_os_error hfn_os_remote_stop(hfn_remote *remote, uint64_t timeout_ns)
{
    (void)remote;
    (void)timeout_ns;
    return UNAVAILABLE;
}

bool hfn_os_remote_is_inside(const hfn_remote *remote, const hfn_remote_range *ranges,
                             uint32_t range_count)
{
    (void)remote;
    (void)ranges;
    (void)range_count;
    return true; /* in doubt */
}

uint64_t hfn_os_remote_get_stopped_ns(const hfn_remote *remote)
{
    (void)remote;
    return 0;
}

bool hfn_os_remote_resume(hfn_remote *remote)
{
    (void)remote;
    return true; /* no thread is attached */
}

void hfn_os_remote_finish(hfn_remote *remote)
{
    (void)remote;
}

bool hfn_os_remote_has_ended(const hfn_remote *remote, uint32_t index)
{
    (void)remote, (void)index;
    return true;
}
