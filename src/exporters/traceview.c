/* SPDX-License-Identifier: MIT */
/* Android's method trace, version 3 (Android developers, "Trace file format"; dmtracedump): a text
 * with threads and methods, then a record for each entry and exit.  Times are microseconds in 32
 * bits: after 71 minutes they are clamped. */
#include "exporters/events.h"

#include <inttypes.h>
#include <string.h>

enum { HEADER_BYTES = 32, RECORD_BYTES = 14 };

typedef struct trace {
    const hfn_view *view;
    hfn_sink *sink;
} trace;

/* Tabs and line feeds are separators of the format. */
static void put_name(hfn_sink *sink, const char *name)
{
    for (const char *at = name; *at; at++) {
        hfn_sink_bytes(sink, (unsigned char)*at < 0x20 ? " " : at, 1);
    }
}

/* The class is the module, the method the function. */
static void put_methods(const hfn_view *view, hfn_sink *sink)
{
    char shown[8192];
    for (uint32_t i = 0; i < view->info.function_count && !sink->failed; i++) {
        hotfn_record_function f;
        hotfn_record_module m;
        hfn_view_function(view, i, &f);
        hfn_view_module(view, f.module, &m);
        hfn_sink_format(sink, "0x%08" PRIx32 "\t", i << 2);
        put_name(sink, m.file);
        hfn_sink_text(sink, "\t");
        put_name(sink, hfn_view_display(view, &f, shown, sizeof shown));
        hfn_sink_text(sink, "\t()V\t");
        put_name(sink, m.file);
        hfn_sink_text(sink, "\t-1\n");
    }
}

static void put_text(const hfn_view *view, hfn_sink *sink)
{
    char name[64];
    hfn_sink_text(sink, "*version\n3\nclock=dual\ndata-file-overflow=false\n");
    hfn_sink_format(sink, "elapsed-time-usec=%" PRIu64 "\n",
                    view->info.end_ns > view->info.start_ns
                        ? (view->info.end_ns - view->info.start_ns) / 1000
                        : 0);
    hfn_sink_text(sink, "vm=hotfn\n*threads\n");
    for (uint32_t i = 0; i < view->info.thread_count; i++) {
        hfn_sink_format(sink, "%" PRIu32 "\t", i + 1);
        put_name(sink, hfn_view_thread_name(view, i, name, sizeof name));
        hfn_sink_text(sink, "\n");
    }
    hfn_sink_text(sink, "*methods\n");
    put_methods(view, sink);
    hfn_sink_text(sink, "*end\n");
}

static void put_event(void *user, const hotfn_record_event *e)
{
    trace *t = user;
    uint64_t time_us = e->time_ns / 1000;
    time_us = time_us < UINT32_MAX ? time_us : UINT32_MAX;
    hfn_sink_le(t->sink, e->thread + 1ull, 2);
    hfn_sink_le(t->sink, (uint64_t)e->function << 2 | (e->kind == 1 ? 0 : 1), 4);
    /* The first is the CPU time, which is not recorded, so the elapsed time is written twice. */
    hfn_sink_le(t->sink, time_us, 4);
    hfn_sink_le(t->sink, time_us, 4);
}

static bool write_traceview(const hfn_view *view, hfn_sink *sink)
{
    trace t = { .view = view, .sink = sink };
    put_text(view, sink);
    hfn_sink_text(sink, "SLOW");
    hfn_sink_le(sink, 3, 2);
    hfn_sink_le(sink, HEADER_BYTES, 2);
    hfn_sink_le(sink, view->info.start_ns / 1000, 8);
    hfn_sink_le(sink, RECORD_BYTES, 2);
    for (int i = 18; i < HEADER_BYTES; i++) {
        hfn_sink_le(sink, 0, 1);
    }
    hfn_events_each(view, put_event, &t);
    return true;
}

const hfn_exporter hfn_exporter_traceview = {
    .name = "traceview",
    .extension = ".trace",
    .about = "Android's method trace, version 3: dmtracedump",
    .needs = HOTFN_NEEDS_TIMES | HOTFN_NEEDS_EVENTS,
    .write = write_traceview,
};
