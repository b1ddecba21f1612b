/* SPDX-License-Identifier: MIT */
/* hotfn.report/1, described in docs/report.schema.json.  Each function is an object of its own that
 * is written and freed before the next, because a record may have a million functions. */
#include "exporters/budget.h"
#include "exporters/json_fields.h"

#include <string.h>

typedef struct report {
    const hfn_view *view;
    hfn_sink *sink;
    hotfn_json_writer *out;
    uint32_t *ranks; /* by function: its index in "functions", or UINT32_MAX if it is not listed */
    char shown[8192];
} report;

static const char *get_module_state(uint32_t flags)
{
    if (flags & HOTFN_MODULE_FAILED) {
        return "failed";
    }
    if (flags & HOTFN_MODULE_LEFT_OUT) {
        return "left-out";
    }
    return flags & HOTFN_MODULE_UNLOADED ? "unloaded"
           : flags & HOTFN_MODULE_LOADED ? "loaded"
                                         : "not-loaded";
}

static void write_modules(const report *r)
{
    hotfn_json_begin_array(r->out, "modules");
    for (uint32_t i = 0; i < r->view->info.module_count; i++) {
        hotfn_json *o = hotfn_json_create_object();
        hotfn_record_module m;
        hfn_view_module(r->view, i, &m);
        hfn_add_text(o, "module", m.file);
        hfn_add_text(o, "path", m.path);
        hfn_add_id(o, "image_id", &m);
        hfn_add_text(o, "state", get_module_state(m.flags));
        hfn_add_text(o, "note", m.note);
        hfn_add_bool(o, "main", m.flags & HOTFN_MODULE_MAIN);
        hfn_add_number(o, "functions", m.function_count);
        hfn_add_optional(o, "code_bytes", m.code_bytes > 0, m.code_bytes);
        hfn_add_optional(o, "known_bytes", m.code_bytes > 0, m.known_bytes);
        hotfn_json_write(r->out, NULL, o);
    }
    hotfn_json_end(r->out);
}

static hotfn_json *create_record(const hfn_view *view)
{
    const hotfn_record_info *info = &view->info;
    hotfn_json *o = hotfn_json_create_object();
    hfn_add_text(o, "state", hotfn_record_get_state_name(info->state));
    hfn_add_text(o, "command", info->command);
    hfn_add_text(o, "directory", info->directory);
    hfn_add_text(o, "tool", info->tool);
    hfn_add_number(o, "pid", info->pid);
    hotfn_json_add(o, "exit_code", hotfn_json_create_signed(info->exit_code));
    hfn_add_number(o, "start_ns", info->start_ns);
    hfn_add_number(o, "end_ns", info->end_ns);
    hfn_add_optional(o, "preparation_ns", info->preparation_ns > 0, info->preparation_ns);
    hfn_add_number(o, "window_start_ns", info->window_start_ns);
    hfn_add_number(o, "window_end_ns", info->window_end_ns);
    hfn_add_number(o, "threads", info->thread_count);
    hfn_add_number(o, "threads_lost", info->threads_lost);
    hfn_add_number(o, "overwritten", info->overwritten_count);
    hfn_add_number(o, "unverified_processes", info->unverified_count);
    hfn_add_number(o, "checked_ns", info->checked_ns);
    hfn_add_number(o, "functions", info->function_count);
    hfn_add_number(o, "calls", view->total_calls);
    if (info->repaired[0]) {
        hfn_add_text(o, "repaired", info->repaired);
    }
    hfn_add_optional(o, "cpu_ns", info->cpu_ns > 0, info->cpu_ns);
    if (info->script[0]) {
        hfn_add_text(o, "script", info->script);
    }
    if (info->became[0]) {
        hfn_add_text(o, "became", info->became);
    }
    hotfn_json_add(o, "children", hfn_create_children(view->record));
    if (view->time.note[0]) {
        hfn_add_text(o, "times_note", view->time.note);
    }
    return o;
}

/* ---- Functions. */

static void add_names(hotfn_json *object, const hotfn_record_function *f)
{
    hotfn_json *names = hotfn_json_create_array();
    hfn_add_text(names, NULL, f->name);
    for (const char *name = f->names; name && *name; name += strlen(name) + 1) {
        hfn_add_text(names, NULL, name);
    }
    hotfn_json_add(object, "names", names);
}

static void add_alloc(hotfn_json *object, const char *key, const hotfn_alloc_cell *a)
{
    hotfn_json *o = hotfn_json_create_object();
    hfn_add_number(o, "allocated_bytes", a->allocated_bytes);
    hfn_add_number(o, "allocated_blocks", a->allocated_blocks);
    hfn_add_number(o, "freed_bytes", a->freed_bytes);
    hfn_add_number(o, "freed_blocks", a->freed_blocks);
    hotfn_json_add(object, key, o);
}

/* Times are null if the function was not timed. */
static void add_timing(const hfn_view *view, hotfn_json *o, uint32_t index)
{
    hotfn_record_timing t;
    hfn_view_timing(view, index, &t);
    bool timed = t.timed_calls > 0 || t.timing != HOTFN_TIMING_COUNT_ONLY;
    hfn_add_optional(o, "total_ns", timed && t.total_ns > 0, t.total_ns);
    hfn_add_optional(o, "self_ns", timed && t.self_ns > 0, t.self_ns);
    hfn_add_optional(o, "max_ns", timed && t.max_ns > 0, t.max_ns);
    hfn_add_optional(o, "p50_ns", timed && !(t.below & HOTFN_BELOW_P50), t.p50_ns);
    hfn_add_optional(o, "p90_ns", timed && !(t.below & HOTFN_BELOW_P90), t.p90_ns);
    hfn_add_optional(o, "p99_ns", timed && !(t.below & HOTFN_BELOW_P99), t.p99_ns);
    hfn_add_number(o, "timed_calls", t.timed_calls);
    hfn_add_number(o, "open_calls", t.open_calls);
    hfn_add_optional(o, "total_error_ns", timed && t.total_error_ns != HOTFN_ERROR_UNKNOWN,
                     t.total_error_ns);
    hfn_add_optional(o, "self_error_ns", timed && t.self_error_ns != HOTFN_ERROR_UNKNOWN,
                     t.self_error_ns);
    timed = timed && view->time.flags & HOTFN_TIMING_WAITING;
    hfn_add_optional(o, "waited_ns", timed, t.waited_ns);
    hfn_add_optional(o, "total_waited_ns", timed, t.total_waited_ns);
    hfn_add_text(o, "timing", hfn_timing_name(t.timing));
    hfn_add_text(o, "timing_reason", t.reason);
    hfn_add_text(o, "timing_reason_text", t.reason_text);
    if (view->time.flags & HOTFN_TIMING_ALLOC) {
        add_alloc(o, "self_alloc", &t.self_alloc);
        add_alloc(o, "total_alloc", &t.total_alloc);
    }
}

/* "file" is the module's path, so the source file has other keys. */
static void add_source(const hfn_view *view, hotfn_json *o, const hotfn_record_function *f,
                       const hotfn_record_module *m)
{
    char file[4096];
    uint32_t line = 0;
    if (hfn_view_line(view, f, m, file, sizeof file, &line)) {
        hfn_add_text(o, "source_file", file);
        hfn_add_number(o, "source_line", line);
    }
}

static hotfn_json *create_function(report *r, uint32_t index)
{
    const hfn_view *view = r->view;
    hotfn_json *o = hotfn_json_create_object();
    hotfn_record_function f;
    hotfn_record_module m;
    hfn_view_function(view, index, &f);
    hfn_view_module(view, f.module, &m);
    hfn_add_text(o, "module", m.file);
    hfn_add_text(o, "file", m.path);
    hfn_add_number(o, "rva", f.rva);
    hfn_add_number(o, "size", f.byte_count);
    hfn_add_text(o, "name", f.name);
    hfn_add_text(o, "display", hfn_view_display(view, &f, r->shown, sizeof r->shown));
    add_names(o, &f);
    add_source(view, o, &f, &m);
    hfn_add_optional(o, "calls", f.counted, f.calls);
    hfn_add_text(o, "state", hfn_state_name(f.state));
    hfn_add_text(o, "strategy", f.strategy);
    hfn_add_text(o, "reason", f.reason);
    hfn_add_text(o, "reason_text", f.reason_text);
    hfn_add_text(o, "found_by", hfn_found_by_name(f.flags));
    hfn_add_bool(o, "entry_is_loop", f.flags & HOTFN_VERDICT_ENTRY_LOOP);
    hfn_budget_add_function(view, o, index);
    if (view->time.flags) {
        add_timing(view, o, index);
    }
    return o;
}

/* ---- Data of timed runs. */

static hotfn_json *create_time_info(const hfn_view *view)
{
    const hotfn_record_time_info *t = &view->time;
    hotfn_json *o = hotfn_json_create_object();
    hfn_add_text(o, "clock", hfn_clock_name(t->clock));
    hfn_add_number(o, "ticks_per_second", t->ticks_per_second);
    hfn_add_decimal(o, "cost_inside_ns", t->cost_inside_ns, 3);
    hfn_add_decimal(o, "cost_outside_ns", t->cost_outside_ns, 3);
    hfn_add_decimal(o, "count_cost_ns", t->count_cost_ns, 3);
    hfn_add_decimal(o, "resolution_ns", t->resolution_ns, 3);
    hfn_add_number(o, "call_stack_bytes", t->call_stack_bytes);
    hfn_add_number(o, "sample_mean", t->sample_mean);
    hfn_add_number(o, "busy_ns", t->busy_ns);
    hfn_add_optional(o, "waited_ns", t->flags & HOTFN_TIMING_WAITING, t->waited_ns);
    hfn_add_number(o, "nodes", t->node_count);
    hfn_add_number(o, "nodes_merged", t->nodes_merged);
    hfn_add_number(o, "self_ns", hfn_view_self_ns(view));
    hfn_add_number(o, "histograms_lost", t->histograms_lost);
    hfn_add_number(o, "slow_lost", t->slow_lost);
    hfn_add_number(o, "abandoned_exits", t->abandoned_exits);
    hfn_add_number(o, "clock_went_back", t->clock_went_back);
    hfn_add_number(o, "events", t->event_count);
    hfn_add_number(o, "events_lost", t->events_lost);
    hfn_add_number(o, "clock_stopped_ns", t->clock_stopped_ns);
    hfn_add_number(o, "waiting_stopped_ns", t->waiting_stopped_ns);
    hfn_add_ticker(o, t);
    return o;
}

static void write_threads(const report *r)
{
    hotfn_json_begin_array(r->out, "threads");
    for (uint32_t i = 0; i < r->view->info.thread_count; i++) {
        hotfn_json *o = hotfn_json_create_object();
        hotfn_record_thread t;
        char name[sizeof t.name + 1] = "";
        hfn_view_thread(r->view, i, &t);
        memcpy(name, t.name, sizeof t.name);
        hfn_add_number(o, "tid", t.tid);
        hfn_add_number(o, "pid", t.pid);
        hfn_add_text(o, "name", name);
        hfn_add_number(o, "calls", t.calls);
        hfn_add_optional(o, "busy_ns", r->view->time.flags != 0, t.busy_ns);
        hfn_add_optional(o, "cpu_ns", t.cpu_ns != 0, t.cpu_ns);
        hfn_add_optional(o, "waited_ns", r->view->time.flags & HOTFN_TIMING_WAITING, t.waited_ns);
        hotfn_json_write(r->out, NULL, o);
    }
    hotfn_json_end(r->out);
}

static bool is_listed(const report *r, uint32_t function)
{
    return function != HOTFN_NO_FUNCTION && r->ranks[function] != UINT32_MAX;
}

/* Functions are named by their index in "functions". */
static void add_rank(const report *r, hotfn_json *o, const char *key, uint32_t function)
{
    bool listed = is_listed(r, function);
    hfn_add_optional(o, key, listed, listed ? r->ranks[function] : 0);
}

/* An edge whose caller or callee is not listed is omitted. */
static void write_edges(const report *r)
{
    hotfn_json_begin_array(r->out, "edges");
    for (uint32_t i = 0; i < r->view->time.edge_count && !r->sink->failed; i++) {
        hotfn_record_edge e;
        hfn_view_edge(r->view, i, &e);
        if ((e.caller != HOTFN_NO_FUNCTION && !is_listed(r, e.caller)) || !is_listed(r, e.callee)) {
            continue;
        }
        hotfn_json *o = hotfn_json_create_object();
        add_rank(r, o, "caller", e.caller);
        add_rank(r, o, "callee", e.callee);
        hfn_add_number(o, "calls", e.calls);
        hfn_add_number(o, "total_ns", e.total_ns);
        hfn_add_bool(o, "merged", e.flags & HOTFN_NODE_MERGED);
        if (r->view->time.flags & HOTFN_TIMING_ALLOC) {
            add_alloc(o, "total_alloc", &e.total_alloc);
        }
        hotfn_json_write(r->out, NULL, o);
    }
    hotfn_json_end(r->out);
}

/* The display names of the callers, the nearest first.  Names are used because a caller may not be
 * listed. */
static hotfn_json *create_callers(report *r, uint32_t node)
{
    hotfn_json *callers = hotfn_json_create_array();
    hotfn_record_node n;
    for (uint32_t at = node; at != HOTFN_NO_NODE; at = n.parent) {
        hfn_view_node(r->view, at, &n);
        if (at != node && n.function != HOTFN_NO_FUNCTION) {
            hotfn_record_function f;
            hfn_view_function(r->view, n.function, &f);
            hfn_add_text(callers, NULL, hfn_view_display(r->view, &f, r->shown, sizeof r->shown));
        }
    }
    return callers;
}

static void write_slow_calls(report *r)
{
    hotfn_json_begin_array(r->out, "slow_calls");
    for (uint32_t i = 0; i < r->view->time.slow_count; i++) {
        hotfn_record_slow_call s = HOTFN_RECORD_SLOW_CALL_INIT;
        hotfn_json *o = hotfn_json_create_object();
        hotfn_record_get_slow_call(r->view->record, i, &s);
        hfn_add_number(o, "start_ns", s.start_ns);
        hfn_add_number(o, "duration_ns", s.duration_ns);
        hfn_add_number(o, "thread", s.thread);
        add_rank(r, o, "function", s.function);
        hotfn_json_add(o, "callers", create_callers(r, s.node));
        hotfn_json_write(r->out, NULL, o);
    }
    hotfn_json_end(r->out);
}

static void write_report(report *r)
{
    const hfn_view *view = r->view;
    hotfn_json_begin_object(r->out, NULL);
    hotfn_json_write(r->out, "schema", hotfn_json_create_text("hotfn.report/1"));
    hotfn_json_write(r->out, "version", hotfn_json_create_text(hotfn_get_version()));
    hotfn_json_write(r->out, "record", create_record(view));
    write_modules(r);
    if (view->time.flags) {
        hotfn_json_write(r->out, "time", create_time_info(view));
    }
    hfn_budget_write(view, r->out, false);
    write_threads(r);
    if (view->time.slow_count) {
        write_slow_calls(r);
    }
    if (view->options.flags & HOTFN_EXPORT_EDGES) {
        write_edges(r);
    }
    hotfn_json_begin_array(r->out, "functions");
    for (uint32_t i = 0; i < view->limit && !r->sink->failed; i++) {
        hfn_view_reach(view, i, view->limit);
        hotfn_json_write(r->out, NULL, create_function(r, view->order[i]));
    }
    hotfn_json_end(r->out);
    hotfn_json_end(r->out);
}

static bool write_json(const hfn_view *view, hfn_sink *sink)
{
    size_t rank_bytes = (view->info.function_count + 1u) * sizeof(uint32_t);
    report *r = hfn_allocate_zeroed(&view->env, sizeof *r);
    uint32_t *ranks = hfn_allocate_zeroed(&view->env, rank_bytes);
    hotfn_json_writer *out = hfn_json_open(sink, 0);
    bool ok = r && ranks && out;
    if (ok) {
        *r = (report){ .view = view, .sink = sink, .out = out, .ranks = ranks };
        memset(ranks, 0xff, rank_bytes);
        for (uint32_t i = 0; i < view->limit; i++) {
            ranks[view->order[i]] = i;
        }
        write_report(r);
    }
    if (out) {
        ok = hfn_json_close(out) && ok;
    }
    hfn_free_memory(&view->env, ranks, rank_bytes);
    hfn_free_memory(&view->env, r, sizeof *r);
    return ok;
}

const hfn_exporter hfn_exporter_json = {
    .name = "json",
    .extension = ".json",
    .about = "hotfn.report/1, every field of every function",
    .needs = HOTFN_NEEDS_FLAT,
    .write = write_json,
};
