/* SPDX-License-Identifier: MIT */
/* No process can be connected to. */
#include "os/local_socket.h"

enum { UNSUPPORTED = 1 };

bool hfn_os_has_local_sockets(void)
{
    return false;
}

hfn_os_error hfn_os_listen(hfn_os_listener *out, const char *name)
{
    (void)out, (void)name;
    return UNSUPPORTED;
}

hfn_os_error hfn_os_accept(hfn_os_file *out, const hfn_os_listener *listener, bool *is_own)
{
    (void)out, (void)listener, (void)is_own;
    return UNSUPPORTED;
}

void hfn_os_stop_listening(const hfn_os_listener *listener)
{
    (void)listener;
}

void hfn_os_close_listener(hfn_os_listener *listener)
{
    *listener = HFN_OS_NO_LISTENER;
}

hfn_os_error hfn_os_connect(hfn_os_file *out, const char *name)
{
    (void)out, (void)name;
    return UNSUPPORTED;
}

hfn_os_error hfn_os_send_message(hfn_os_file connection, const void *bytes, size_t count)
{
    (void)connection, (void)bytes, (void)count;
    return UNSUPPORTED;
}

hfn_os_error hfn_os_receive_message(hfn_os_file connection, uint32_t timeout_s, void *out,
                                    size_t capacity, size_t *count)
{
    (void)connection, (void)timeout_s, (void)out, (void)capacity;
    *count = 0;
    return UNSUPPORTED;
}
