/* SPDX-License-Identifier: MIT */
/* Chrome's trace event format ("Trace Event Format", JSON object form): B and E of every call, with
 * microseconds to the nanosecond, and the names of process and threads.  Perfetto's page, speedscope,
 * Firefox Profiler and Tracy's import-chrome read it. */
#include "exporters/events.h"

#include <inttypes.h>
#include <stdio.h>

typedef struct chrome {
    const hfn_view *view;
    hfn_sink *sink;
    char shown[8192];
} chrome;

static void thread_ids(const hfn_view *view, uint32_t thread, uint32_t *pid, uint32_t *tid)
{
    hotfn_record_thread t;
    hfn_view_thread(view, thread, &t);
    *pid = t.pid;
    *tid = t.tid;
}

static void put_meta(const chrome *c, const char *what, uint32_t pid, uint32_t tid,
                     const char *name)
{
    hfn_sink_format(c->sink,
                    ",\n{\"ph\":\"M\",\"name\":\"%s\",\"pid\":%" PRIu32 ",\"tid\":%" PRIu32
                    ",\"args\":{\"name\":",
                    what, pid, tid);
    hfn_sink_json(c->sink, name);
    hfn_sink_text(c->sink, "}}");
}

static void put_event(void *user, const hotfn_record_event *e)
{
    chrome *c = user;
    hotfn_record_function f;
    uint32_t pid, tid;
    if (c->sink->failed) {
        return;
    }
    thread_ids(c->view, e->thread, &pid, &tid);
    hfn_view_function(c->view, e->function, &f);
    hfn_sink_format(
        c->sink,
        ",\n{\"ph\":\"%s\",\"pid\":%" PRIu32 ",\"tid\":%" PRIu32 ",\"ts\":%" PRIu64 ".%03u",
        e->kind == 1 ? "B" : "E", pid, tid, e->time_ns / 1000, (unsigned)(e->time_ns % 1000));
    hfn_sink_json_key(c->sink, "name", hfn_view_display(c->view, &f, c->shown, sizeof c->shown));
    hfn_sink_text(c->sink, "}");
}

static bool write_chrome(const hfn_view *view, hfn_sink *sink)
{
    chrome *c = hfn_alloc(&view->env, sizeof *c);
    uint32_t pid = view->info.pid, tid;
    hotfn_record_thread t;
    char name[sizeof t.name + 1];
    if (!c) {
        return false;
    }
    *c = (chrome){ .view = view, .sink = sink };
    hfn_sink_format(sink,
                    "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n{\"ph\":\"M\",\"name\":"
                    "\"process_sort_index\",\"pid\":%" PRIu32 ",\"tid\":%" PRIu32
                    ",\"args\":{\"sort_index\":0}}",
                    pid, pid);
    put_meta(c, "process_name", pid, pid, view->info.command);
    for (uint32_t i = 0; i < view->info.thread_count; i++) {
        hfn_view_thread(view, i, &t);
        snprintf(name, sizeof name, "%.16s", t.name);
        thread_ids(view, i, &pid, &tid);
        put_meta(c, "thread_name", pid, tid, name);
    }
    hfn_events_each(view, put_event, c);
    hfn_sink_text(sink, "\n]}\n");
    hfn_free(&view->env, c, sizeof *c);
    return true;
}

const hfn_exporter hfn_exporter_chrome = {
    .name = "chrome",
    .extension = ".trace.json",
    .about = "each call on a time line: ui.perfetto.dev, chrome://tracing, speedscope, Tracy",
    .needs = HOTFN_NEEDS_TIMES | HOTFN_NEEDS_EVENTS,
    .write = write_chrome,
};
