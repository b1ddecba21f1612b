/* SPDX-License-Identifier: MIT */
/* Sockets of datagrams (udp(7), unix(7)).  A sender is not connected: then no error of an earlier
 * datagram is reported in the place of the next one, and a receiver may be started again. */
#include "os/datagrams.h"

#include "base/status.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { PORT_TEXT_BYTES = 8, RECEIVE_QUEUE_BYTES = 8 << 20, SEND_QUEUE_BYTES = 1 << 20 };

_Static_assert(sizeof(struct sockaddr_in6) <= HFN_OS_ADDRESS_BYTES, "an address fits");
_Static_assert(sizeof((struct sockaddr_un){ 0 }.sun_path) == HFN_OS_SOCKET_PATH_BYTES,
               "a path fits");

static const hfn_os_socket closed = HFN_OS_SOCKET_CLOSED;

static hotfn_status report_failure(hotfn_error *err, const char *what, const char *where)
{
    int error = errno;

    return hfn_report_error(err, HOTFN_E_IO, where[0] ? where : NULL, HOTFN_NO_OFFSET, "%s (%s)",
                            what, strerror(error));
}

static struct sockaddr_un make_path(const char *path)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };

    memcpy(address.sun_path, path, strnlen(path, sizeof address.sun_path - 1));
    return address;
}

static int open_socket(int family)
{
    return socket(family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

/* The addresses of a host, for freeaddrinfo; flags as of getaddrinfo. */
static hotfn_status find_host(struct addrinfo **out, const hfn_os_address *a, int flags,
                              hotfn_error *err)
{
    struct addrinfo wanted = { .ai_family = AF_UNSPEC,
                               .ai_socktype = SOCK_DGRAM,
                               .ai_flags = flags | AI_NUMERICSERV };
    char port[PORT_TEXT_BYTES];

    snprintf(port, sizeof port, "%u", a->port);
    int error = getaddrinfo(a->host[0] ? a->host : NULL, port, &wanted, out);
    return error == 0
               ? HOTFN_OK
               : hfn_report_error(err, HOTFN_E_NOT_FOUND, NULL, HOTFN_NO_OFFSET,
                                  "the host '%s' is not known (%s)", a->host, gai_strerror(error));
}

/* ---- Sending. */

static hotfn_status open_udp_sender(hfn_os_socket *out, const hfn_os_address *to, hotfn_error *err)
{
    hfn_os_address here = *to;
    struct addrinfo *found = NULL;

    if (!to->host[0]) {
        memcpy(here.host, "127.0.0.1", sizeof "127.0.0.1");
    }
    hotfn_status status = find_host(&found, &here, 0, err);
    if (status != HOTFN_OK) {
        return status;
    }
    out->handle = open_socket(found->ai_family);
    out->to_bytes = found->ai_addrlen;
    memcpy(out->to, found->ai_addr, found->ai_addrlen);
    freeaddrinfo(found);
    return out->handle < 0 ? report_failure(err, "no socket can be opened", to->host) : HOTFN_OK;
}

hotfn_status hfn_os_open_sender(hfn_os_socket *out, const hfn_os_address *to, hotfn_error *err)
{
    int queue_bytes = SEND_QUEUE_BYTES;

    *out = closed;
    if (to->path[0]) {
        out->handle = open_socket(AF_UNIX);
        memcpy(out->path, to->path, sizeof out->path);
        if (out->handle < 0) {
            return report_failure(err, "no socket can be opened", to->path);
        }
    } else {
        hotfn_status status = open_udp_sender(out, to, err);
        if (status != HOTFN_OK) {
            return status;
        }
    }
    (void)setsockopt((int)out->handle, SOL_SOCKET, SO_SNDBUF, &queue_bytes, sizeof queue_bytes);
    return HOTFN_OK;
}

hfn_os_sent hfn_os_send_datagram(const hfn_os_socket *s, const void *bytes, size_t count)
{
    struct sockaddr_un path = make_path(s->path);
    const void *to = s->to_bytes ? (const void *)s->to : (const void *)&path;
    ssize_t done;

    do {
        done = sendto((int)s->handle, bytes, count, MSG_DONTWAIT | MSG_NOSIGNAL, to,
                      s->to_bytes ? s->to_bytes : sizeof path);
    } while (done < 0 && errno == EINTR);
    if (done >= 0) {
        return HFN_OS_SENT;
    }
    return errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS ? HFN_OS_QUEUE_FULL
                                                                       : HFN_OS_NO_RECEIVER;
}

/* ---- Receiving. */

/* Remove the file of a socket on which no process receives; any other file stays. */
static void remove_unused_socket(const struct sockaddr_un *address)
{
    struct stat found;
    int probe;

    if (lstat(address->sun_path, &found) != 0 || !S_ISSOCK(found.st_mode)) {
        return;
    }
    probe = open_socket(AF_UNIX);
    if (probe >= 0 && connect(probe, (const void *)address, sizeof *address) != 0 &&
        errno == ECONNREFUSED) {
        unlink(address->sun_path);
    }
    close(probe);
}

static hotfn_status open_path_receiver(hfn_os_socket *out, const char *path, hotfn_error *err)
{
    struct sockaddr_un address = make_path(path);

    out->handle = open_socket(AF_UNIX);
    if (out->handle < 0) {
        return report_failure(err, "no socket can be opened", path);
    }
    remove_unused_socket(&address);
    if (bind((int)out->handle, (const void *)&address, sizeof address) == 0) {
        memcpy(out->path, path, sizeof out->path);
        return HOTFN_OK;
    }
    return errno == EADDRINUSE
               ? hfn_report_error(err, HOTFN_E_STATE, path, HOTFN_NO_OFFSET,
                                  "another process listens there, or it is a file: choose "
                                  "another path")
               : report_failure(err, "no socket can be made there", path);
}

static bool bind_host(hfn_os_socket *out, const struct addrinfo *at)
{
    int off = 0;

    out->handle = open_socket(at->ai_family);
    if (out->handle < 0) {
        return false;
    }
    if (at->ai_family == AF_INET6) { /* IPv4 as well */
        (void)setsockopt((int)out->handle, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    }
    if (bind((int)out->handle, at->ai_addr, at->ai_addrlen) == 0) {
        return true;
    }
    int error = errno;
    close((int)out->handle);
    out->handle = -1;
    errno = error;
    return false;
}

static uint16_t get_own_port(int handle)
{
    struct sockaddr_storage own;
    socklen_t bytes = sizeof own;

    if (getsockname(handle, (struct sockaddr *)&own, &bytes) != 0) {
        return 0;
    }
    return ntohs(own.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)(void *)&own)->sin6_port
                                           : ((struct sockaddr_in *)(void *)&own)->sin_port);
}

static hotfn_status open_udp_receiver(hfn_os_socket *out, hfn_os_address *at, hotfn_error *err)
{
    struct addrinfo *found = NULL;
    hotfn_status status = find_host(&found, at, AI_PASSIVE, err);
    bool is_bound = false;

    if (status != HOTFN_OK) {
        return status;
    }
    for (int family = AF_INET6;; family = AF_INET) { /* an IPv6 socket receives both */
        for (const struct addrinfo *i = found; i && !is_bound; i = i->ai_next) {
            is_bound = i->ai_family == family && bind_host(out, i);
        }
        if (is_bound || family == AF_INET) {
            break;
        }
    }
    int error = errno;
    freeaddrinfo(found);
    if (is_bound) {
        at->port = get_own_port((int)out->handle);
        return HOTFN_OK;
    }
    return hfn_report_error(err, error == EADDRINUSE ? HOTFN_E_STATE : HOTFN_E_IO, NULL,
                            HOTFN_NO_OFFSET, "port %u cannot be listened on (%s)", at->port,
                            strerror(error));
}

hotfn_status hfn_os_open_receiver(hfn_os_socket *out, hfn_os_address *at, hotfn_error *err)
{
    int queue_bytes = RECEIVE_QUEUE_BYTES;

    *out = closed;
    hotfn_status status =
        at->path[0] ? open_path_receiver(out, at->path, err) : open_udp_receiver(out, at, err);
    if (status != HOTFN_OK) {
        hfn_os_close_socket(out);
        return status;
    }
    if (setsockopt((int)out->handle, SOL_SOCKET, SO_RCVBUFFORCE, &queue_bytes,
                   sizeof queue_bytes) != 0) {
        (void)setsockopt((int)out->handle, SOL_SOCKET, SO_RCVBUF, &queue_bytes, sizeof queue_bytes);
    }
    return HOTFN_OK;
}

hotfn_status hfn_os_receive_datagram(const hfn_os_socket *s, uint64_t timeout_ns, void *out,
                                     size_t capacity, size_t *count, hotfn_error *err)
{
    struct pollfd waits = { .fd = (int)s->handle, .events = POLLIN };
    struct timespec timeout = { (time_t)(timeout_ns / 1000000000),
                                (long)(timeout_ns % 1000000000) };

    *count = 0;
    ssize_t done = recv((int)s->handle, out, capacity, MSG_TRUNC | MSG_DONTWAIT);
    if (done < 0 && (errno == EAGAIN || errno == EWOULDBLOCK) && timeout_ns > 0) {
        if (ppoll(&waits, 1, &timeout, NULL) <= 0) {
            return HOTFN_OK;
        }
        done = recv((int)s->handle, out, capacity, MSG_TRUNC | MSG_DONTWAIT);
    }
    if (done >= 0) {
        *count = (size_t)done;
        return HOTFN_OK;
    }
    return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR || errno == ECONNREFUSED
               ? HOTFN_OK
               : report_failure(err, "nothing can be received", s->path);
}

void hfn_os_close_socket(hfn_os_socket *s)
{
    struct sockaddr_un own;
    socklen_t bytes = sizeof own;

    if (s->handle < 0) {
        return;
    }
    /* only a receiver is bound to its path */
    if (s->path[0] && getsockname((int)s->handle, (struct sockaddr *)&own, &bytes) == 0 &&
        bytes > offsetof(struct sockaddr_un, sun_path)) {
        unlink(s->path);
    }
    close((int)s->handle);
    *s = closed;
}
