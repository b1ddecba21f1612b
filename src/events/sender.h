/* SPDX-License-Identifier: MIT */
/* The sender of events: reads new events from the rings of a live record and sends them.  It runs
 * in the launcher, so the target never waits for it. */
#ifndef HFN_EVENTS_SENDER_H
#define HFN_EVENTS_SENDER_H

#include "live/live.h"

typedef struct hfn_event_sender hfn_event_sender;

#define HFN_SEND_POLL_NS UINT64_C(2000000) /* the interval between two polls */

/* Create a sender to an address (borrowed).  HOTFN_OK, HOTFN_E_OPTION (not an address, or port 0),
 * HOTFN_E_NOT_FOUND, HOTFN_E_IO, HOTFN_E_UNSUPPORTED, HOTFN_E_NO_MEMORY. */
hotfn_status hfn_event_sender_create(hfn_event_sender **out, const char *address,
                                     const hotfn_env *env, hotfn_error *err);
void hfn_event_sender_destroy(hfn_event_sender *sender); /* NULL is fine */

/* Begin a stream with the events of a record, which is borrowed until hfn_event_sender_end.  False:
 * no memory, or no random number. */
bool hfn_event_sender_begin(hfn_event_sender *sender, hfn_live *live, uint32_t pid,
                            const char *command);
/* Send the events since the last poll. */
void hfn_event_sender_poll(hfn_event_sender *sender);
/* Send the remaining events and the end of the stream, if one has begun.  is_replaced: the target
 * has not ended, but executed another program. */
void hfn_event_sender_end(hfn_event_sender *sender, bool is_replaced);

#endif
