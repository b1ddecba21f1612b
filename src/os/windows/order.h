/* SPDX-License-Identifier: MIT */
/* The order of a launcher for the agent in a process: named shared memory that the launcher holds
 * while the process runs.  An agent that finds none does nothing. */
#ifndef HFN_OS_WINDOWS_ORDER_H
#define HFN_OS_WINDOWS_ORDER_H

#include "os/error.h"

#include <stdbool.h>
#include <stdint.h>

#define HFN_ORDER_MAGIC UINT64_C(0x314452304e464824) /* the last digit is the version */

/* The bytes of the image's headers that were changed to load the agent; byte_count 0: none. */
typedef struct hfn_changed_headers {
    uint64_t address[2];
    uint32_t byte_count[2];
    uint8_t original[2][8];
} hfn_changed_headers;

typedef struct hfn_agent_order {
    uint64_t magic;
    hfn_changed_headers headers;
    uint32_t text_bytes;
    char text[1012]; /* of the launch folder */
} hfn_agent_order;

/* *handle keeps the order until it is closed. */
hfn_os_error hfn_order_publish(int64_t *handle, uint32_t pid, const hfn_agent_order *order);
/* The order for this process; false if there is none. */
bool hfn_order_read(hfn_agent_order *out);
/* Restore the headers that were changed to load the agent. */
void hfn_order_restore_headers(const hfn_changed_headers *headers);

#endif
