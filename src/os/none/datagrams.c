/* SPDX-License-Identifier: MIT */
/* No socket can be opened. */
#include "os/datagrams.h"

#include "base/status.h"

static hotfn_status refuse_socket(hfn_os_socket *out, hotfn_error *err)
{
    out->handle = -1;
    return hfn_report_error(err, HOTFN_E_UNSUPPORTED, NULL, HOTFN_NO_OFFSET,
                            "events cannot be sent and received on this system: keep them in the "
                            "record (run --events), and show it with hotfn open");
}

hotfn_status hfn_os_open_sender(hfn_os_socket *out, const hfn_os_address *to, hotfn_error *err)
{
    (void)to;
    return refuse_socket(out, err);
}

hfn_os_sent hfn_os_send_datagram(const hfn_os_socket *sender, const void *bytes, size_t count)
{
    (void)sender, (void)bytes, (void)count;
    return HFN_OS_NO_RECEIVER;
}

hotfn_status hfn_os_open_receiver(hfn_os_socket *out, hfn_os_address *at, hotfn_error *err)
{
    (void)at;
    return refuse_socket(out, err);
}

hotfn_status hfn_os_receive_datagram(const hfn_os_socket *receiver, uint64_t timeout_ns, void *out,
                                     size_t capacity, size_t *count, hotfn_error *err)
{
    (void)receiver, (void)timeout_ns, (void)out, (void)capacity, (void)err;
    *count = 0;
    return HOTFN_OK;
}

void hfn_os_close_socket(hfn_os_socket *socket)
{
    socket->handle = -1;
}
