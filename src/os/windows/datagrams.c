/* SPDX-License-Identifier: MIT */
/* Sockets of datagrams by Winsock: UDP only. */
#include "os/datagrams.h"

#include "base/status.h"

#include <winsock2.h>
#include <ws2tcpip.h>

#include <stdio.h>
#include <string.h>

enum { PORT_TEXT_BYTES = 8, RECEIVE_QUEUE_BYTES = 8 << 20, SEND_QUEUE_BYTES = 1 << 20 };

_Static_assert(sizeof(struct sockaddr_in6) <= HFN_OS_ADDRESS_BYTES, "an address fits");

static const hfn_os_socket closed = HFN_OS_SOCKET_CLOSED;

static hotfn_status report_failure(hotfn_error *err, const char *what, const char *where)
{
    return hfn_report_error(err, HOTFN_E_IO, where[0] ? where : NULL, HOTFN_NO_OFFSET,
                            "%s (Winsock error %d)", what, WSAGetLastError());
}

/* Refuse paths; start Winsock, which counts how often it is started. */
static hotfn_status start_sockets(hfn_os_socket *out, const hfn_os_address *a, hotfn_error *err)
{
    WSADATA data;

    *out = closed;
    if (a->path[0]) {
        return hfn_report_error(err, HOTFN_E_UNSUPPORTED, a->path, HOTFN_NO_OFFSET,
                                "there are no datagrams by Unix sockets on Windows: use "
                                "udp:HOST:PORT");
    }
    return WSAStartup(MAKEWORD(2, 2), &data) == 0
               ? HOTFN_OK
               : hfn_report_error(err, HOTFN_E_IO, NULL, HOTFN_NO_OFFSET,
                                  "the network of this system cannot be used");
}

/* The addresses of a host, for freeaddrinfo; flags as of getaddrinfo. */
static hotfn_status find_host(struct addrinfo **out, const hfn_os_address *a, int flags,
                              hotfn_error *err)
{
    struct addrinfo wanted = { .ai_family = AF_UNSPEC,
                               .ai_socktype = SOCK_DGRAM,
                               .ai_flags = flags | AI_NUMERICSERV };
    char port[PORT_TEXT_BYTES];
    int error;

    snprintf(port, sizeof port, "%u", a->port);
    error = getaddrinfo(a->host[0] ? a->host : NULL, port, &wanted, out);
    return error == 0
               ? HOTFN_OK
               : hfn_report_error(err, HOTFN_E_NOT_FOUND, NULL, HOTFN_NO_OFFSET,
                                  "the host '%s' is not known (Winsock error %d)", a->host, error);
}

static bool open_socket(hfn_os_socket *out, int family, int queue, int queue_bytes)
{
    u_long no_wait = 1;
    SOCKET s = socket(family, SOCK_DGRAM, 0);

    if (s == INVALID_SOCKET) {
        return false;
    }
    ioctlsocket(s, FIONBIO, &no_wait);
    setsockopt(s, SOL_SOCKET, queue, (const char *)&queue_bytes, sizeof queue_bytes);
    out->handle = (int64_t)s;
    return true;
}

/* ---- Sending. */

static hotfn_status open_sender(hfn_os_socket *out, const hfn_os_address *to, hotfn_error *err)
{
    hfn_os_address here = *to;
    struct addrinfo *found = NULL;
    hotfn_status status;

    if (!to->host[0]) {
        memcpy(here.host, "127.0.0.1", sizeof "127.0.0.1");
    }
    status = find_host(&found, &here, 0, err);
    if (status != HOTFN_OK) {
        return status;
    }
    out->to_bytes = (uint32_t)found->ai_addrlen;
    memcpy(out->to, found->ai_addr, found->ai_addrlen);
    if (!open_socket(out, found->ai_family, SO_SNDBUF, SEND_QUEUE_BYTES)) {
        status = report_failure(err, "no socket can be opened", to->host);
    }
    freeaddrinfo(found);
    return status;
}

hotfn_status hfn_os_open_sender(hfn_os_socket *out, const hfn_os_address *to, hotfn_error *err)
{
    hotfn_status status = start_sockets(out, to, err);

    if (status == HOTFN_OK) {
        status = open_sender(out, to, err);
        if (status != HOTFN_OK) {
            WSACleanup();
        }
    }
    return status;
}

hfn_os_sent hfn_os_send_datagram(const hfn_os_socket *s, const void *bytes, size_t count)
{
    if (sendto((SOCKET)s->handle, bytes, (int)count, 0, (const void *)s->to, (int)s->to_bytes) !=
        SOCKET_ERROR) {
        return HFN_OS_SENT;
    }
    return WSAGetLastError() == WSAEWOULDBLOCK || WSAGetLastError() == WSAENOBUFS
               ? HFN_OS_QUEUE_FULL
               : HFN_OS_NO_RECEIVER;
}

/* ---- Receiving. */

static bool bind_host(hfn_os_socket *out, const struct addrinfo *at)
{
    DWORD off = 0;

    if (!open_socket(out, at->ai_family, SO_RCVBUF, RECEIVE_QUEUE_BYTES)) {
        return false;
    }
    if (at->ai_family == AF_INET6) { /* IPv4 as well */
        setsockopt((SOCKET)out->handle, IPPROTO_IPV6, IPV6_V6ONLY, (const char *)&off, sizeof off);
    }
    if (bind((SOCKET)out->handle, at->ai_addr, (int)at->ai_addrlen) == 0) {
        return true;
    }
    closesocket((SOCKET)out->handle);
    out->handle = -1;
    return false;
}

static uint16_t get_own_port(int64_t handle)
{
    struct sockaddr_in6 own; /* its port is where sockaddr_in has it */
    int bytes = sizeof own;

    memset(&own, 0, sizeof own);
    getsockname((SOCKET)handle, (struct sockaddr *)&own, &bytes);
    return ntohs(own.sin6_port);
}

static hotfn_status open_receiver(hfn_os_socket *out, hfn_os_address *at, hotfn_error *err)
{
    static const int families[] = { AF_INET6, AF_INET };
    struct addrinfo *found = NULL;
    hotfn_status status = find_host(&found, at, AI_PASSIVE, err);
    bool is_bound = false;

    if (status != HOTFN_OK) {
        return status;
    }
    for (int i = 0; i < 2; i++) { /* an IPv6 socket receives both */
        for (const struct addrinfo *a = found; a && !is_bound; a = a->ai_next) {
            is_bound = a->ai_family == families[i] && bind_host(out, a);
        }
    }
    if (is_bound) {
        at->port = get_own_port(out->handle);
    } else {
        status = hfn_report_error(err, HOTFN_E_STATE, NULL, HOTFN_NO_OFFSET,
                                  "port %u cannot be listened on (Winsock error %d)", at->port,
                                  WSAGetLastError());
    }
    freeaddrinfo(found);
    return status;
}

hotfn_status hfn_os_open_receiver(hfn_os_socket *out, hfn_os_address *at, hotfn_error *err)
{
    hotfn_status status = start_sockets(out, at, err);

    if (status == HOTFN_OK) {
        status = open_receiver(out, at, err);
        if (status != HOTFN_OK) {
            WSACleanup();
        }
    }
    return status;
}

hotfn_status hfn_os_receive_datagram(const hfn_os_socket *s, uint64_t timeout_ns, void *out,
                                     size_t capacity, size_t *count, hotfn_error *err)
{
    WSAPOLLFD waits = { .fd = (SOCKET)s->handle, .events = POLLRDNORM };
    int done = recv((SOCKET)s->handle, out, (int)capacity, 0), error = WSAGetLastError();

    *count = 0;
    if (done == SOCKET_ERROR && error == WSAEWOULDBLOCK && timeout_ns > 0) {
        if (WSAPoll(&waits, 1, (int)((timeout_ns + 999999) / 1000000)) <= 0) {
            return HOTFN_OK;
        }
        done = recv((SOCKET)s->handle, out, (int)capacity, 0);
        error = WSAGetLastError();
    }
    if (done != SOCKET_ERROR) {
        *count = (size_t)done;
        return HOTFN_OK;
    }
    if (error == WSAEMSGSIZE) { /* only its beginning was read */
        *count = capacity + 1;
        return HOTFN_OK;
    }
    return error == WSAEWOULDBLOCK || error == WSAECONNRESET
               ? HOTFN_OK
               : report_failure(err, "nothing can be received", "");
}

void hfn_os_close_socket(hfn_os_socket *s)
{
    if (s->handle >= 0) {
        closesocket((SOCKET)s->handle);
        WSACleanup();
    }
    *s = closed;
}
