/* SPDX-License-Identifier: MIT */
/* Messages between two processes of one user on this machine: one message and its answer for each
 * connection.  The receiver has a name, which is no file. */
#ifndef HFN_OS_LOCAL_SOCKET_H
#define HFN_OS_LOCAL_SOCKET_H

#include "os/files.h"

enum { HFN_OS_SOCKET_NAME_BYTES = 100 };

/* False: all calls of this file fail on this system. */
bool hfn_os_has_local_sockets(void);

typedef struct hfn_os_listener {
    hfn_os_file file, stop; /* stop: used by some systems */
} hfn_os_listener;

#define HFN_OS_NO_LISTENER ((hfn_os_listener){ { -1 }, { -1 } })

/* Receive connections by that name; it is free again when the listener is closed. */
hfn_os_error hfn_os_listen(hfn_os_listener *out, const char *name);
/* Wait for a connection, which is closed before the next one is waited for.  *is_own: its process
 * acts for the same user, or for root.  Fails after hfn_os_stop_listening. */
hfn_os_error hfn_os_accept(hfn_os_file *out, const hfn_os_listener *listener, bool *is_own);
/* End the wait of another thread in hfn_os_accept, and all later ones. */
void hfn_os_stop_listening(const hfn_os_listener *listener);
void hfn_os_close_listener(hfn_os_listener *listener);

/* Connect to the process that listens by that name; hfn_os_is_missing: none does. */
hfn_os_error hfn_os_connect(hfn_os_file *out, const char *name);

/* Send a message in one piece. */
hfn_os_error hfn_os_send_message(hfn_os_file connection, const void *bytes, size_t count);
/* Receive one, for at most timeout_s seconds; *count is 0 if the other end was closed.  A message
 * that is longer than the capacity is cut. */
hfn_os_error hfn_os_receive_message(hfn_os_file connection, uint32_t timeout_s, void *out,
                                    size_t capacity, size_t *count);

#endif
