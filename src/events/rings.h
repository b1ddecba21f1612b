/* SPDX-License-Identifier: MIT */
/*
 * Reading the rings of events of a live record while the target's threads write to them.
 *
 * A thread increments its number of events, then marks the entry as being written, writes it, and
 * stores its kind (counters/timing/call_tree.h).  It orders these stores for its own signal
 * handlers only.  A reader therefore
 *   - reads only events that the number included at the poll before;
 *   - ends before an entry that is being written, or is older than the one before it: the thread
 *     was interrupted between two of its stores.  If the thread has written half a ring since, a
 *     signal handler has left that entry by a jump, and it is skipped;
 *   - reads the number again after a copy: what may have been overwritten meanwhile is skipped.
 */
#ifndef HFN_EVENTS_RINGS_H
#define HFN_EVENTS_RINGS_H

#include "live/live.h"

/* What was read of a row's ring. */
typedef struct hfn_ring {
    uint64_t next;      /* number of the event to read next                      */
    uint64_t end;       /* events before this number are read in this poll       */
    uint64_t counted;   /* number of events that were written at its begin       */
    uint64_t ticks;     /* of the event that was read last                       */
    uint32_t thread_id; /* the system's id of the thread that wrote them         */
    uint32_t owner_id;  /* of the row's owner at the begin of this poll          */
} hfn_ring;

/* The number of rows whose rings can be read; 0: the record has no events. */
uint32_t hfn_rings_count(const hfn_live *live);
/* Begin a poll.  is_final: no thread writes any more, so all events are read. */
void hfn_ring_begin(hfn_ring *ring, const hfn_live *live, uint32_t row, bool is_final);
/* Copy the next events of the poll, at most room; returns their number.  *skipped is increased by
 * the number of events before them that are lost. */
uint32_t hfn_ring_read(hfn_ring *ring, const hfn_live *live, uint32_t row, hfn_time_event *out,
                       uint32_t room, uint64_t *skipped);

#endif
