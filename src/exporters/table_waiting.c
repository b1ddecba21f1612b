/* SPDX-License-Identifier: MIT */
/* How much of the time in hooked functions their threads waited.  A thread was on a processor for
 * at most its processor time, so the rest of its time in hooked functions is waiting. */
#include "exporters/table.h"

#include <stdio.h>

#define NOTED_SHARE 10u /* a tenth: smaller differences are errors of reading */

static uint64_t get_waited_ns(const hfn_view *view)
{
    uint64_t waited = 0;

    for (uint32_t i = 0; i < view->info.thread_count; i++) {
        hotfn_record_thread t;
        hfn_view_thread(view, i, &t);
        waited += t.cpu_ns != 0 && t.busy_ns > t.cpu_ns ? t.busy_ns - t.cpu_ns : 0;
    }
    return waited;
}

void hfn_table_waiting(const hfn_view *view, hfn_sink *sink)
{
    uint64_t waited = get_waited_ns(view);

    if (waited > view->time.busy_ns / NOTED_SHARE) {
        hfn_sink_format(sink, ", of which their threads waited at least %.3f s (%.0f %%)",
                        (double)waited / 1e9, 100 * (double)waited / (double)view->time.busy_ns);
    }
}
