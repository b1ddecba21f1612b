/* SPDX-License-Identifier: MIT */
/* Entries and exits as viewers want them: each exit with its entry.  A ring may begin or end in the
 * midst of calls: exits whose entry was overwritten are passed over, open calls end where the thread's
 * events do. */
#ifndef HFN_EXPORTERS_EVENTS_H
#define HFN_EXPORTERS_EVENTS_H

#include "exporters/exporter.h"

typedef void (*hfn_event_fn)(void *user, const hotfn_record_event *event);

/* To each, thread after thread, in the order of time within a thread. */
void hfn_events_each(const hfn_view *view, hfn_event_fn each, void *user);

#endif
