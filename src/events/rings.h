/* SPDX-License-Identifier: MIT */
/*
 * Reads the events of a live record while the target's threads write them.  Each thread has a ring.
 *
 * To write an event, a thread increments its event count, marks the element of the ring as
 * incomplete (kind 0), stores ticks and slot, and stores the kind (counters/timing/call_tree.h).
 * These stores are ordered only for the thread's own signal handlers, not for other processors.  A
 * reader therefore
 *   - reads only events that were included in the count when the poll before this one began;
 *   - stops at an element that is incomplete, or older than the element before it: the thread was
 *     interrupted between two of these stores.  If the thread has written half a ring of events
 *     since, a signal handler left the store sequence by a jump; the element is skipped;
 *   - reads the count again after copying, and skips elements that may have been overwritten.
 */
#ifndef HFN_EVENTS_RINGS_H
#define HFN_EVENTS_RINGS_H

#include "live/live.h"

/* How far the ring of a row has been read.  Events are numbered from 0. */
typedef struct hfn_ring {
    uint64_t next;      /* the event to read next                                          */
    uint64_t end;       /* this poll reads the events below this number                    */
    uint64_t counted;   /* the thread's event count when this poll began                   */
    uint64_t ticks;     /* time of the event that was read last                            */
    uint32_t thread_id; /* the system's id of the thread that wrote the events of the poll */
    uint32_t owner_id;  /* the system's id of the row's owner when this poll began         */
} hfn_ring;

/* The number of rows whose rings can be read; 0: the record has no events. */
uint32_t hfn_rings_count(const hfn_live *live);
/* Begin a poll.  If is_final is set, no thread writes events any more, so all of them are read. */
void hfn_ring_begin(hfn_ring *ring, const hfn_live *live, uint32_t row, bool is_final);
/* Copy the next events of the poll, at most `room`, and return how many.  Add to *skipped the
 * number of events before them that are lost. */
uint32_t hfn_ring_read(hfn_ring *ring, const hfn_live *live, uint32_t row, hfn_time_event *out,
                       uint32_t room, uint64_t *skipped);

#endif
