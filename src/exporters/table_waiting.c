/* SPDX-License-Identifier: MIT */
/* Shows how much of the time in hooked functions was spent waiting.  A thread ran for at most its
 * processor time, so any further time in hooked functions was waiting. */
#include "exporters/table.h"

#include <stdio.h>

#define MIN_SHARE_DIVISOR 10u /* waiting below 1/10 is not shown: it may be a measurement error */

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

    if (waited > view->time.busy_ns / MIN_SHARE_DIVISOR) {
        hfn_sink_format(sink, ", of which their threads waited at least %.3f s (%.0f %%)",
                        (double)waited / 1e9, 100 * (double)waited / (double)view->time.busy_ns);
    }
}
