/* SPDX-License-Identifier: MIT */
/* Datagrams between processes: UDP, and Unix datagram sockets. */
#ifndef HFN_OS_DATAGRAMS_H
#define HFN_OS_DATAGRAMS_H

#include <hotfn/status.h>
#include <stddef.h>
#include <stdint.h>

#define HFN_OS_HOST_BYTES 256
#define HFN_OS_SOCKET_PATH_BYTES 108 /* unix(7): sun_path */
#define HFN_OS_ADDRESS_BYTES 28      /* of IPv6 */

/* The address of a receiver. */
typedef struct hfn_os_address {
    char host[HFN_OS_HOST_BYTES];        /* UDP: a name or an IP address; "": this machine */
    char path[HFN_OS_SOCKET_PATH_BYTES]; /* Unix: the socket's file; "": UDP               */
    uint16_t port;                       /* UDP; 0: the system chooses one (receivers only) */
} hfn_os_address;

typedef struct hfn_os_socket {
    int64_t handle;
    uint8_t to[HFN_OS_ADDRESS_BYTES];    /* sender by UDP: the receiver's sockaddr            */
    uint32_t to_bytes;                   /* 0: not a sender by UDP                            */
    char path[HFN_OS_SOCKET_PATH_BYTES]; /* Unix: the socket's file, which is removed when its
                                            receiver is closed                             */
} hfn_os_socket;
#define HFN_OS_SOCKET_CLOSED                                                                       \
    {                                                                                              \
        -1, { 0 }, 0,                                                                              \
        {                                                                                          \
            0                                                                                      \
        }                                                                                          \
    }

/* Open a sender; without a host, it sends to this machine.  The receiver need not exist.  HOTFN_OK,
 * HOTFN_E_NOT_FOUND (the host is not known), HOTFN_E_IO, HOTFN_E_UNSUPPORTED (this system). */
hotfn_status hfn_os_open_sender(hfn_os_socket *out, const hfn_os_address *to, hotfn_error *err);

typedef enum hfn_os_sent {
    HFN_OS_SENT,
    HFN_OS_QUEUE_FULL,  /* a queue has no room: try again later */
    HFN_OS_NO_RECEIVER, /* no receiver exists, or another error */
} hfn_os_sent;
/* Send one datagram, without waiting.  By UDP, HFN_OS_SENT does not mean that it is received. */
hfn_os_sent hfn_os_send_datagram(const hfn_os_socket *sender, const void *bytes, size_t count);

/* Open a receiver; without a host, it receives on all addresses of this machine.  The port that the
 * system chose is stored in *at.  A socket file that no process uses any more is replaced.
 * HOTFN_OK, HOTFN_E_NOT_FOUND (the host is not known), HOTFN_E_STATE (another process receives
 * there), HOTFN_E_IO, HOTFN_E_UNSUPPORTED (this system). */
hotfn_status hfn_os_open_receiver(hfn_os_socket *out, hfn_os_address *at, hotfn_error *err);

/* Wait up to timeout_ns for a datagram, and read it.  *count is its size, which is above capacity
 * if only its beginning was read; 0: no datagram arrived, or a signal handler ended the wait.
 * HOTFN_OK, HOTFN_E_IO. */
hotfn_status hfn_os_receive_datagram(const hfn_os_socket *receiver, uint64_t timeout_ns, void *out,
                                     size_t capacity, size_t *count, hotfn_error *err);

/* Close a sender or a receiver; a closed socket is fine. */
void hfn_os_close_socket(hfn_os_socket *socket);

#endif
