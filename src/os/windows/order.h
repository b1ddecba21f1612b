/* SPDX-License-Identifier: MIT */
/* The order of a launcher for the agent in a process: named shared memory.  An agent that finds
 * none does nothing. */
#ifndef HFN_OS_WINDOWS_ORDER_H
#define HFN_OS_WINDOWS_ORDER_H

#include "os/agent.h"

/* *handle keeps the order until it is closed. */
hfn_os_error hfn_order_publish(int64_t *handle, uint32_t pid, const hfn_agent_order *order);
/* Map the order for process pid.  The caller unmaps *out and closes *handle.  If the order is of
 * another version, its memory ends after the first page. */
hfn_os_error hfn_order_map(int64_t *handle, hfn_agent_order **out, uint32_t pid, bool creates);
/* Is it an order of this version?  It may be of any origin. */
bool hfn_order_is_valid(const hfn_agent_order *order);
/* The order of hotfn run for this process; false if there is none. */
bool hfn_order_read(hfn_agent_order *out);
/* Restore the headers that were changed to load the agent. */
void hfn_order_restore_headers(const hfn_changed_headers *headers);

/* stop.c: for how long the threads were stopped the last time. */
uint64_t hfn_get_last_stop_ns(void);

#endif
