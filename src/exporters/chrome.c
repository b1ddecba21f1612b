/* SPDX-License-Identifier: MIT */
/* Chrome's trace event format ("Trace Event Format", JSON object form): a B and an E event for
 * every call, with a time in microseconds with three decimals, and the names of processes and
 * threads.  Perfetto's page, speedscope, Firefox Profiler and Tracy's import-chrome read it. */
#include "exporters/events.h"
#include "exporters/json_fields.h"

#include <inttypes.h>
#include <stdio.h>

typedef struct chrome {
    const hfn_view *view;
    hfn_sink *sink;
    hotfn_json_writer *out;
    char shown[8192];
} chrome;

static hotfn_json *create_event(const char *phase, uint32_t pid, uint32_t tid)
{
    hotfn_json *o = hotfn_json_create_object();
    hfn_add_text(o, "ph", phase);
    hfn_add_number(o, "pid", pid);
    hfn_add_number(o, "tid", tid);
    return o;
}

static void write_name(const chrome *c, const char *what, uint32_t pid, uint32_t tid,
                       const char *name)
{
    hotfn_json *event = create_event("M", pid, tid), *args = hotfn_json_create_object();
    hfn_add_text(event, "name", what);
    hfn_add_text(args, "name", name);
    hotfn_json_add(event, "args", args);
    hotfn_json_write(c->out, NULL, event);
}

static void write_event(void *user, const hotfn_record_event *e)
{
    chrome *c = user;
    hotfn_record_function f;
    hotfn_record_thread t;
    char microseconds[40];
    if (c->sink->failed) {
        return;
    }
    hfn_view_thread(c->view, e->thread, &t);
    hfn_view_function(c->view, e->function, &f);
    snprintf(microseconds, sizeof microseconds, "%" PRIu64 ".%03u", e->time_ns / 1000,
             (unsigned)(e->time_ns % 1000));
    hotfn_json *o = create_event(e->kind == 1 ? "B" : "E", t.pid, t.tid);
    hfn_add_raw(o, "ts", microseconds);
    hfn_add_text(o, "name", hfn_view_display(c->view, &f, c->shown, sizeof c->shown));
    hotfn_json_write(c->out, NULL, o);
}

static void write_names(const chrome *c)
{
    const hfn_view *view = c->view;
    uint32_t pid = view->info.pid;
    hotfn_json *order = create_event("M", pid, pid);
    hfn_add_text(order, "name", "process_sort_index");
    hfn_add_raw(order, "args", "{\"sort_index\":0}");
    hotfn_json_write(c->out, NULL, order);
    write_name(c, "process_name", pid, pid, view->info.command);
    for (uint32_t i = 0; i < view->info.thread_count; i++) {
        hotfn_record_thread t;
        char name[sizeof t.name + 1];
        hfn_view_thread(view, i, &t);
        snprintf(name, sizeof name, "%.16s", t.name);
        write_name(c, "thread_name", t.pid, t.tid, name);
    }
}

static bool write_chrome(const hfn_view *view, hfn_sink *sink)
{
    hotfn_json_writer *out = hfn_json_open(sink, 0);
    chrome *c = hfn_allocate_zeroed(&view->env, sizeof *c);
    bool ok = out && c;
    if (ok) {
        *c = (chrome){ .view = view, .sink = sink, .out = out };
        hotfn_json_begin_object(out, NULL);
        hotfn_json_write(out, "displayTimeUnit", hotfn_json_create_text("ns"));
        hotfn_json_begin_array(out, "traceEvents");
        write_names(c);
        hfn_events_each(view, write_event, c);
        hotfn_json_end(out);
        hotfn_json_end(out);
    }
    if (out) {
        ok = hfn_json_close(out) && ok;
    }
    hfn_free_memory(&view->env, c, sizeof *c);
    return ok;
}

const hfn_exporter hfn_exporter_chrome = {
    .name = "chrome",
    .extension = ".trace.json",
    .about = "each call on a time line: ui.perfetto.dev, chrome://tracing, speedscope, Tracy",
    .needs = HOTFN_NEEDS_TIMES | HOTFN_NEEDS_EVENTS,
    .write = write_chrome,
};
