/* SPDX-License-Identifier: MIT */
/* Unix sockets with abstract names, of whole messages (unix(7), SOCK_SEQPACKET).  Any process may
 * connect to an abstract name, so the kernel is asked for the user of the other end. */
#include "os/local_socket.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

enum { WAITING_CONNECTIONS = 8 };

static socklen_t make_address(struct sockaddr_un *out, const char *name)
{
    size_t length = strnlen(name, HFN_OS_SOCKET_NAME_BYTES);

    *out = (struct sockaddr_un){ .sun_family = AF_UNIX };
    memcpy(out->sun_path + 1, name, length);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length);
}

static int open_socket(void)
{
    return socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
}

/* Close the socket after a failure; returns its error. */
static hfn_os_error close_failed(int socket)
{
    int error = errno;

    if (socket >= 0) {
        close(socket);
    }
    return error;
}

static bool is_other_end_own(int connection)
{
    struct ucred other;
    socklen_t bytes = sizeof other;

    return getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &other, &bytes) == 0 &&
           (other.uid == geteuid() || other.uid == 0);
}

bool hfn_os_has_local_sockets(void)
{
    return true;
}

hfn_os_error hfn_os_listen(hfn_os_listener *out, const char *name)
{
    struct sockaddr_un address;
    socklen_t bytes = make_address(&address, name);
    int listener = open_socket();

    if (listener < 0 || bind(listener, (struct sockaddr *)&address, bytes) != 0 ||
        listen(listener, WAITING_CONNECTIONS) != 0) {
        return close_failed(listener);
    }
    *out = (hfn_os_listener){ { listener }, HFN_OS_NO_FILE };
    return 0;
}

hfn_os_error hfn_os_accept(hfn_os_file *out, const hfn_os_listener *listener, bool *is_own)
{
    int connection;

    do {
        connection = accept4((int)listener->file.handle, NULL, NULL, SOCK_CLOEXEC);
    } while (connection < 0 && (errno == EINTR || errno == ECONNABORTED));
    if (connection < 0) {
        return errno;
    }
    *is_own = is_other_end_own(connection);
    out->handle = connection;
    return 0;
}

void hfn_os_stop_listening(const hfn_os_listener *listener)
{
    shutdown((int)listener->file.handle, SHUT_RDWR);
}

void hfn_os_close_listener(hfn_os_listener *listener)
{
    close((int)listener->file.handle);
    *listener = HFN_OS_NO_LISTENER;
}

hfn_os_error hfn_os_connect(hfn_os_file *out, const char *name)
{
    struct sockaddr_un address;
    socklen_t bytes = make_address(&address, name);
    int connection = open_socket();

    if (connection < 0 || connect(connection, (struct sockaddr *)&address, bytes) != 0) {
        hfn_os_error error = close_failed(connection);
        return error == ECONNREFUSED ? ENOENT : error;
    }
    if (!is_other_end_own(connection)) {
        close(connection);
        return EACCES;
    }
    out->handle = connection;
    return 0;
}

hfn_os_error hfn_os_send_message(hfn_os_file connection, const void *bytes, size_t count)
{
    ssize_t sent;

    do {
        sent = send((int)connection.handle, bytes, count, MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    return sent < 0 ? errno : 0;
}

hfn_os_error hfn_os_receive_message(hfn_os_file connection, uint32_t timeout_s, void *out,
                                    size_t capacity, size_t *count)
{
    struct timeval limit = { .tv_sec = timeout_s };
    ssize_t received;

    setsockopt((int)connection.handle, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    do {
        received = recv((int)connection.handle, out, capacity, 0);
    } while (received < 0 && errno == EINTR);
    *count = received > 0 ? (size_t)received : 0;
    return received >= 0 ? 0 : errno == EAGAIN ? ETIMEDOUT : errno;
}
