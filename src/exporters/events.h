/* SPDX-License-Identifier: MIT */
/* Deliver entries and exits in pairs, as viewers expect them.  The ring of events may begin or end
 * inside calls: an exit whose entry was overwritten is skipped, and a call that is still open ends
 * with the last event of its thread. */
#ifndef HFN_EXPORTERS_EVENTS_H
#define HFN_EXPORTERS_EVENTS_H

#include "exporters/exporter.h"

typedef void (*hfn_event_fn)(void *user, const hotfn_record_event *event);

/* Call `each` for every event, one thread after the other, in the order of time within a thread. */
void hfn_events_each(const hfn_view *view, hfn_event_fn each, void *user);

#endif
