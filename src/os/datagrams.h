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

/* Where datagrams go to, or where they are received. */
typedef struct hfn_os_address {
    char host[HFN_OS_HOST_BYTES];        /* UDP: a name or a number; "": see the calls     */
    char path[HFN_OS_SOCKET_PATH_BYTES]; /* the socket's file; "": UDP                     */
    uint16_t port;                       /* UDP; 0: a receiver gets a free one             */
} hfn_os_address;

typedef struct hfn_os_socket {
    int64_t handle;
    uint8_t to[HFN_OS_ADDRESS_BYTES]; /* of a sender by UDP, as the system writes it       */
    uint32_t to_bytes;
    char path[HFN_OS_SOCKET_PATH_BYTES]; /* a receiver removes this file when it is closed */
} hfn_os_socket;
#define HFN_OS_SOCKET_CLOSED                                                                       \
    {                                                                                              \
        -1, { 0 }, 0,                                                                              \
        {                                                                                          \
            0                                                                                      \
        }                                                                                          \
    }

/* Open a sender; without a host, to this machine.  The receiver need not exist.  HOTFN_OK,
 * HOTFN_E_NOT_FOUND (the host is not known), HOTFN_E_IO, HOTFN_E_UNSUPPORTED (this system). */
hotfn_status hfn_os_open_sender(hfn_os_socket *out, const hfn_os_address *to, hotfn_error *err);

typedef enum hfn_os_sent {
    HFN_OS_SENT,
    HFN_OS_QUEUE_FULL,  /* try again later      */
    HFN_OS_NO_RECEIVER, /* there is none now, or another error */
} hfn_os_sent;
/* Send one datagram, without waiting.  By UDP a datagram is SENT if it has left, received or not.
 */
hfn_os_sent hfn_os_send_datagram(const hfn_os_socket *sender, const void *bytes, size_t count);

/* Open a receiver; without a host, it receives on all addresses of this machine.  *at is completed
 * with the port.  A socket's file that no process uses is replaced.  HOTFN_OK, HOTFN_E_NOT_FOUND,
 * HOTFN_E_STATE (another process receives there), HOTFN_E_IO, HOTFN_E_UNSUPPORTED (this system). */
hotfn_status hfn_os_open_receiver(hfn_os_socket *out, hfn_os_address *at, hotfn_error *err);

/* Wait for a datagram at most timeout_ns, and read it.  *count is its size, which is above capacity
 * if it was cut; 0: none, or a signal handler ran.  HOTFN_OK, HOTFN_E_IO. */
hotfn_status hfn_os_receive_datagram(const hfn_os_socket *receiver, uint64_t timeout_ns, void *out,
                                     size_t capacity, size_t *count, hotfn_error *err);

/* Close either; a closed socket is fine. */
void hfn_os_close_socket(hfn_os_socket *socket);

#endif
