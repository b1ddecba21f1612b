/* SPDX-License-Identifier: MIT */
/* Writes datagrams of events; hotfn_events_open and hotfn_events_next read them.
 * docs/design/events.md describes their format. */
#ifndef HFN_EVENTS_FORMAT_H
#define HFN_EVENTS_FORMAT_H

#include <hotfn/lowlevel/events.h>
#include <stdbool.h>

#define HFN_EVENTS_MAGIC "HFNE"

enum { /* offsets in the header of a datagram */
       HFN_EVENTS_AT_MAGIC = 0,
       HFN_EVENTS_AT_VERSION = 4,   /* u16 */
       HFN_EVENTS_AT_FLAGS = 6,     /* u16 */
       HFN_EVENTS_AT_STREAM = 8,    /* u64 */
       HFN_EVENTS_AT_SEQUENCE = 16, /* u64 */
       HFN_EVENTS_AT_SKIPPED = 24,  /* u64 */
};

#define HFN_EVENTS_CALL_ROOM 24u /* bytes of a thread item and one entry or exit */

/* A datagram that is being written. */
typedef struct hfn_events_writer {
    uint32_t limit;       /* maximum of `used`                                      */
    uint32_t used;        /* bytes of the header and of the items so far            */
    uint32_t event_count; /* entries and exits                                      */
    bool has_thread;      /* further entries and exits belong to the latest thread item */
    bool has_names;       /* there is an item of a function, a module or the run    */
    uint8_t bytes[HOTFN_EVENTS_MAX_BYTES];
} hfn_events_writer;

/* Begin an empty datagram of at most limit bytes. */
void hfn_events_begin(hfn_events_writer *writer, uint32_t limit);
/* Append an item, with at most HOTFN_EVENTS_MAX_TEXT_BYTES of its text.  False if it does not
 * fit. */
bool hfn_events_put(hfn_events_writer *writer, const hotfn_events_item *item);
/* Write the header, which completes the datagram. */
void hfn_events_seal(hfn_events_writer *writer, const hotfn_events_header *header);

#endif
