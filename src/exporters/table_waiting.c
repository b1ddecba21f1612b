/* SPDX-License-Identifier: MIT */
/* Shows how long threads waited in hooked functions, or were ready to run but not on a processor.
 * By the tick clock that is known for each function.  Otherwise it is known for a thread only: it
 * ran for at most its processor time, so any further time in hooked functions was waiting. */
#include "exporters/table.h"

#include <stdio.h>

#define MIN_SHARE_DIVISOR 10u /* waiting below 1/10 is not shown: it may be a measurement error */

static bool is_known(const hfn_view *view)
{
    return (view->time.flags & HOTFN_TIMING_WAITING) != 0;
}

bool hfn_table_shows_waiting(const hfn_view *view)
{
    return is_known(view) && view->time.waited_ns > view->time.busy_ns / MIN_SHARE_DIVISOR;
}

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
    uint64_t waited;

    if (is_known(view)) {
        hfn_sink_format(sink, " on a processor; they waited for %.3f s",
                        (double)view->time.waited_ns / 1e9);
        return;
    }
    waited = get_waited_ns(view);
    if (waited > view->time.busy_ns / MIN_SHARE_DIVISOR) {
        hfn_sink_format(sink, ", of which their threads waited at least %.3f s (%.0f %%)",
                        (double)waited / 1e9, 100 * (double)waited / (double)view->time.busy_ns);
    }
}
