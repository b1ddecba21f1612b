/* SPDX-License-Identifier: MIT */
/* One line for each function, in order (RFC 4180: CRLF, doubled quotes).  calls is empty if the
 * function was not counted. */
#include "exporters/budget.h"

#include <inttypes.h>
#include <string.h>

#define TIME_COLUMNS                                                                               \
    ",total_ns,self_ns,max_ns,p50_ns,p90_ns,p99_ns,timing,timing_reason,"                          \
    "open_calls,total_error_ns,self_error_ns,waited_ns,total_waited_ns"

static void put_field(hfn_sink *sink, const char *text)
{
    if (!text[strcspn(text, ",\"\r\n")]) {
        hfn_sink_text(sink, text);
        return;
    }
    hfn_sink_text(sink, "\"");
    for (const char *quote; (quote = strchr(text, '"')); text = quote + 1) {
        hfn_sink_bytes(sink, text, (size_t)(quote - text));
        hfn_sink_text(sink, "\"\"");
    }
    hfn_sink_text(sink, text);
    hfn_sink_text(sink, "\"");
}

/* If the function was not timed, only timing and timing_reason are written and the other fields are
 * empty.  A time that is too short to be measured is empty, too, as is an unknown error. */
static void put_times(const hfn_view *view, hfn_sink *sink, uint32_t index)
{
    hotfn_record_timing t;
    hfn_view_timing(view, index, &t);
    const uint64_t times[] = { t.total_ns,
                               t.self_ns,
                               t.max_ns,
                               t.below & HOTFN_BELOW_P50 ? 0 : t.p50_ns,
                               t.below & HOTFN_BELOW_P90 ? 0 : t.p90_ns,
                               t.below & HOTFN_BELOW_P99 ? 0 : t.p99_ns };
    for (size_t i = 0; i < HFN_COUNT_OF(times); i++) {
        hfn_sink_text(sink, ",");
        if (t.timed_calls > 0 && times[i] > 0) {
            hfn_sink_format(sink, "%" PRIu64, times[i]);
        }
    }
    hfn_sink_format(sink, ",%s,", hfn_timing_name(t.timing));
    put_field(sink, t.reason);
    hfn_sink_text(sink, ",");
    if (t.timed_calls > 0) {
        hfn_sink_format(sink, "%" PRIu64, t.open_calls);
    }
    const uint64_t errors[] = { t.total_error_ns, t.self_error_ns };
    for (size_t i = 0; i < HFN_COUNT_OF(errors); i++) {
        hfn_sink_text(sink, ",");
        if (t.timed_calls > 0 && errors[i] != HOTFN_ERROR_UNKNOWN) {
            hfn_sink_format(sink, "%" PRIu64, errors[i]);
        }
    }
    const uint64_t waited[] = { t.waited_ns, t.total_waited_ns };
    for (size_t i = 0; i < HFN_COUNT_OF(waited); i++) {
        hfn_sink_text(sink, ",");
        if (t.timed_calls > 0 && view->time.flags & HOTFN_TIMING_WAITING) {
            hfn_sink_format(sink, "%" PRIu64, waited[i]);
        }
    }
}

static void put_row(const hfn_view *view, hfn_sink *sink, uint32_t rank, char *shown,
                    size_t shown_bytes)
{
    hotfn_record_function f;
    hotfn_record_module m;
    hfn_view_function(view, view->order[rank], &f);
    hfn_view_module(view, f.module, &m);
    hfn_sink_format(sink, "%" PRIu32 ",", rank + 1);
    if (f.counted) {
        hfn_sink_format(sink, "%" PRIu64, f.calls);
    }
    hfn_sink_text(sink, ",");
    put_field(sink, m.file);
    hfn_sink_format(sink, ",%" PRIu64 ",%" PRIu64 ",", f.rva, f.byte_count);
    put_field(sink, f.name);
    hfn_sink_text(sink, ",");
    put_field(sink, hfn_view_display(view, &f, shown, shown_bytes));
    hfn_sink_text(sink, ",");
    put_field(sink, hfn_state_name(f.state));
    hfn_sink_text(sink, ",");
    put_field(sink, f.strategy);
    hfn_sink_text(sink, ",");
    put_field(sink, f.reason);
    if (view->time.flags) {
        put_times(view, sink, view->order[rank]);
    }
    if (hfn_view_has_budget(view)) {
        hfn_sink_text(sink, hfn_view_is_lower_bound(view, view->order[rank]) ? ",yes" : ",no");
    }
    hfn_sink_text(sink, "\r\n");
}

static bool write_csv(const hfn_view *view, hfn_sink *sink)
{
    char shown[8192];
    hfn_sink_text(sink, "rank,calls,module,rva,size,name,display,state,strategy,reason");
    hfn_sink_text(sink, view->time.flags ? TIME_COLUMNS : "");
    hfn_sink_text(sink, hfn_view_has_budget(view) ? ",calls_at_least\r\n" : "\r\n");
    for (uint32_t i = 0; i < view->limit && !sink->failed; i++) {
        hfn_view_reach(view, i, view->limit);
        put_row(view, sink, i, shown, sizeof shown);
    }
    return true;
}

const hfn_exporter hfn_exporter_csv = {
    .name = "csv",
    .extension = ".csv",
    .about = "one line for each function, for spreadsheets",
    .needs = HOTFN_NEEDS_FLAT,
    .write = write_csv,
};
