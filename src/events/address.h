/* SPDX-License-Identifier: MIT */
/* Addresses for events in the form that users write: udp:PORT, udp:HOST:PORT, udp:[IPV6]:PORT,
 * unix:PATH. */
#ifndef HFN_EVENTS_ADDRESS_H
#define HFN_EVENTS_ADDRESS_H

#include "os/datagrams.h"

/* Parse an address.  Port 0 is valid here.  HOTFN_OK, HOTFN_E_OPTION. */
hotfn_status hfn_address_parse(hfn_os_address *out, const char *text, hotfn_error *err);
/* Write an address in that form. */
void hfn_address_format(char *out, size_t out_bytes, const hfn_os_address *address);

#endif
