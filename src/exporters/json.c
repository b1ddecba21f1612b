/* SPDX-License-Identifier: MIT */
/* hotfn.report/1, described in docs/report.schema.json.  Written by hand, as a stream: u64 are
 * written raw (cJSON keeps numbers as doubles), and a record may list a million functions. */
#include "exporters/budget.h"

#include <inttypes.h>
#include <string.h>

static void put_id(hfn_sink *sink, const hotfn_record_module *m)
{
    hfn_sink_text(sink, ",\"image_id\":\"");
    for (uint32_t i = 0; i < m->id_bytes && i < sizeof m->id; i++) {
        hfn_sink_format(sink, "%02x", m->id[i]);
    }
    hfn_sink_text(sink, "\"");
}

static const char *module_state(uint32_t flags)
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

static void put_modules(const hfn_view *view, hfn_sink *sink)
{
    hfn_sink_text(sink, ",\n\"modules\":[");
    for (uint32_t i = 0; i < view->info.module_count; i++) {
        hotfn_record_module m;
        hfn_view_module(view, i, &m);
        hfn_sink_text(sink, i ? ",\n{\"module\":" : "\n{\"module\":");
        hfn_sink_json(sink, m.file);
        hfn_sink_json_key(sink, "path", m.path);
        put_id(sink, &m);
        hfn_sink_json_key(sink, "state", module_state(m.flags));
        hfn_sink_json_key(sink, "note", m.note);
        hfn_sink_format(sink, ",\"main\":%s,\"functions\":%" PRIu32 "}",
                        m.flags & HOTFN_MODULE_MAIN ? "true" : "false", m.function_count);
    }
    hfn_sink_text(sink, "]");
}

static void put_record(const hfn_view *view, hfn_sink *sink)
{
    const hotfn_record_info *info = &view->info;
    hfn_sink_text(sink, "{\"schema\":\"hotfn.report/1\"");
    hfn_sink_json_key(sink, "version", hotfn_get_version());
    hfn_sink_text(sink, ",\n\"record\":{\"state\":");
    hfn_sink_json(sink, hotfn_record_get_state_name(info->state));
    hfn_sink_json_key(sink, "command", info->command);
    hfn_sink_json_key(sink, "directory", info->directory);
    hfn_sink_json_key(sink, "tool", info->tool);
    hfn_sink_format(sink, ",\"pid\":%" PRIu32 ",\"exit_code\":%" PRId32, info->pid,
                    info->exit_code);
    hfn_sink_format(sink, ",\"start_ns\":%" PRIu64 ",\"end_ns\":%" PRIu64, info->start_ns,
                    info->end_ns);
    hfn_sink_format(sink, ",\"window_start_ns\":%" PRIu64 ",\"window_end_ns\":%" PRIu64,
                    info->window_start_ns, info->window_end_ns);
    hfn_sink_format(sink, ",\"threads\":%" PRIu32 ",\"threads_lost\":%" PRIu32, info->thread_count,
                    info->threads_lost);
    hfn_sink_format(sink, ",\"functions\":%" PRIu32 ",\"calls\":%" PRIu64, info->function_count,
                    view->total_calls);
    if (info->repaired[0]) {
        hfn_sink_json_key(sink, "repaired", info->repaired);
    }
    if (view->time.note[0]) {
        hfn_sink_json_key(sink, "times_note", view->time.note);
    }
    hfn_sink_text(sink, "}");
}

static void put_names(hfn_sink *sink, const hotfn_record_function *f)
{
    hfn_sink_text(sink, ",\"names\":[");
    hfn_sink_json(sink, f->name);
    for (const char *name = f->names; name && *name; name += strlen(name) + 1) {
        hfn_sink_text(sink, ",");
        hfn_sink_json(sink, name);
    }
    hfn_sink_text(sink, "]");
}

static void put_alloc(hfn_sink *sink, const char *key, const hotfn_alloc_cell *a)
{
    hfn_sink_format(sink,
                    ",\"%s\":{\"allocated_bytes\":%" PRIu64 ",\"allocated_blocks\":%" PRIu64
                    ",\"freed_bytes\":%" PRIu64 ",\"freed_blocks\":%" PRIu64 "}",
                    key, a->allocated_bytes, a->allocated_blocks, a->freed_bytes, a->freed_blocks);
}

static void put_error(hfn_sink *sink, const char *key, uint64_t ns)
{
    if (ns == HOTFN_ERROR_UNKNOWN) {
        hfn_sink_format(sink, ",\"%s\":null", key);
    } else {
        hfn_sink_format(sink, ",\"%s\":%" PRIu64, key, ns);
    }
}

/* What was not timed has no times: null. */
static void put_timing(const hfn_view *view, hfn_sink *sink, uint32_t index)
{
    static const char *const keys[] = { "total_ns", "self_ns", "min_ns", "max_ns",
                                        "p50_ns",   "p90_ns",  "p99_ns" };
    hotfn_record_timing t;
    hfn_view_timing(view, index, &t);
    const uint64_t times[] = { t.total_ns, t.self_ns, t.min_ns, t.max_ns,
                               t.p50_ns,   t.p90_ns,  t.p99_ns };
    bool timed = t.timed_calls > 0;
    for (size_t i = 0; i < HFN_COUNT_OF(keys); i++) {
        if (timed || t.timing != HOTFN_TIMING_COUNT_ONLY) {
            hfn_sink_format(sink, ",\"%s\":%" PRIu64, keys[i], times[i]);
        } else {
            hfn_sink_format(sink, ",\"%s\":null", keys[i]);
        }
    }
    hfn_sink_format(sink, ",\"timed_calls\":%" PRIu64 ",\"open_calls\":%" PRIu64, t.timed_calls,
                    t.open_calls);
    if (t.timing == HOTFN_TIMING_SAMPLE) {
        put_error(sink, "total_error_ns", t.total_error_ns);
        put_error(sink, "self_error_ns", t.self_error_ns);
        if (t.total_error_ns == HOTFN_ERROR_UNKNOWN) {
            hfn_sink_json_key(sink, "error_reason", "recursion");
        }
    }
    hfn_sink_json_key(sink, "timing", hfn_timing_name(t.timing));
    hfn_sink_json_key(sink, "timing_reason", t.reason);
    if (view->time.flags & HOTFN_TIMING_ALLOC) {
        put_alloc(sink, "self_alloc", &t.self_alloc);
        put_alloc(sink, "total_alloc", &t.total_alloc);
    }
}

/* "file" is the module's: the source has names of its own. */
static void put_line(const hfn_view *view, hfn_sink *sink, const hotfn_record_function *f,
                     const hotfn_record_module *m)
{
    char file[4096];
    uint32_t line = 0;
    if (hfn_view_line(view, f, m, file, sizeof file, &line)) {
        hfn_sink_json_key(sink, "source_file", file);
        hfn_sink_format(sink, ",\"source_line\":%" PRIu32, line);
    }
}

static void put_function(const hfn_view *view, hfn_sink *sink, uint32_t index, char *shown,
                         size_t shown_bytes)
{
    hotfn_record_function f;
    hotfn_record_module m;
    hfn_view_function(view, index, &f);
    hfn_view_module(view, f.module, &m);
    hfn_sink_text(sink, "{\"module\":");
    hfn_sink_json(sink, m.file);
    hfn_sink_json_key(sink, "file", m.path);
    hfn_sink_format(sink, ",\"rva\":%" PRIu64 ",\"size\":%" PRIu64, f.rva, f.byte_count);
    hfn_sink_json_key(sink, "name", f.name);
    hfn_sink_json_key(sink, "display", hfn_view_display(view, &f, shown, shown_bytes));
    put_names(sink, &f);
    put_line(view, sink, &f, &m);
    if (f.counted) {
        hfn_sink_format(sink, ",\"calls\":%" PRIu64, f.calls);
    } else {
        hfn_sink_text(sink, ",\"calls\":null");
    }
    hfn_sink_json_key(sink, "state", hfn_state_name(f.state));
    hfn_sink_json_key(sink, "strategy", f.strategy);
    hfn_sink_json_key(sink, "reason", f.reason);
    hfn_sink_json_key(sink, "reason_text", f.reason_text);
    hfn_sink_format(sink, ",\"entry_is_loop\":%s",
                    f.flags & HOTFN_VERDICT_ENTRY_LOOP ? "true" : "false");
    hfn_budget_json_function(view, sink, index);
    if (view->time.flags) {
        put_timing(view, sink, index);
    }
    hfn_sink_text(sink, "}");
}

/* ---- What timing adds. */

static void put_time_info(const hfn_view *view, hfn_sink *sink)
{
    const hotfn_record_time_info *t = &view->time;
    char note[200];
    hfn_sink_format(sink, ",\n\"time\":{\"clock\":\"%s\",\"ticks_per_second\":%" PRIu64,
                    hfn_clock_name(t->clock), t->ticks_per_second);
    hfn_sink_format(sink, ",\"cost_inside_ns\":%.3f,\"cost_outside_ns\":%.3f", t->cost_inside_ns,
                    t->cost_outside_ns);
    hfn_sink_format(sink, ",\"count_cost_ns\":%.3f,\"resolution_ns\":%.3f,\"sample_mean\":%" PRIu32,
                    t->count_cost_ns, t->resolution_ns, t->sample_mean);
    hfn_sink_format(sink,
                    ",\"busy_ns\":%" PRIu64 ",\"nodes\":%" PRIu32 ",\"nodes_merged\":%" PRIu32,
                    t->busy_ns, t->node_count, t->nodes_merged);
    hfn_sink_format(sink, ",\"self_ns\":%" PRIu64, hfn_view_self_ns(view));
    hfn_sink_json_key(sink, "self_note", hfn_view_self_note(view, note));
    hfn_sink_format(sink, ",\"histograms_lost\":%" PRIu32 ",\"slow_lost\":%" PRIu64,
                    t->histograms_lost, t->slow_lost);
    hfn_sink_format(sink, ",\"abandoned_exits\":%" PRIu32 ",\"clock_went_back\":%" PRIu32,
                    t->abandoned_exits, t->clock_went_back);
    hfn_sink_format(sink, ",\"events\":%" PRIu64 ",\"events_lost\":%" PRIu64, t->event_count,
                    t->events_lost);
    hfn_sink_format(sink, ",\"clock_stopped_ns\":%" PRIu64 ",\"cost_tries\":%" PRIu64 "}",
                    t->clock_stopped_ns, t->cost_tries);
}

static void put_threads(const hfn_view *view, hfn_sink *sink)
{
    hfn_sink_text(sink, ",\n\"threads\":[");
    for (uint32_t i = 0; i < view->info.thread_count; i++) {
        char name[sizeof(((hotfn_record_thread *)0)->name) + 1] = "";
        hotfn_record_thread t;
        hfn_view_thread(view, i, &t);
        memcpy(name, t.name, sizeof t.name);
        hfn_sink_format(sink, "%s{\"tid\":%" PRIu32 ",\"pid\":%" PRIu32, i ? ",\n" : "\n", t.tid,
                        t.pid);
        hfn_sink_json_key(sink, "name", name);
        hfn_sink_format(sink, ",\"calls\":%" PRIu64 ",\"busy_ns\":", t.calls);
        if (view->time.flags) {
            hfn_sink_format(sink, "%" PRIu64 "}", t.busy_ns);
        } else {
            hfn_sink_text(sink, "null}");
        }
    }
    hfn_sink_text(sink, "]");
}

static void put_place(hfn_sink *sink, const char *key, uint32_t function, const uint32_t *places)
{
    if (function == HOTFN_NO_FUNCTION) {
        hfn_sink_format(sink, "\"%s\":null", key);
    } else {
        hfn_sink_format(sink, "\"%s\":%" PRIu32, key, places[function]);
    }
}

/* A function that may not be listed, then null. */
static void put_listed(hfn_sink *sink, uint32_t function, const uint32_t *places)
{
    bool listed = function != HOTFN_NO_FUNCTION && places[function] != UINT32_MAX;
    put_place(sink, "function", listed ? function : HOTFN_NO_FUNCTION, places);
}

/* By place in "functions"; an edge of one that is not listed is not either. */
static void put_edges(const hfn_view *view, hfn_sink *sink, const uint32_t *places)
{
    const char *separator = "\n";
    hfn_sink_text(sink, ",\n\"edges\":[");
    for (uint32_t i = 0; i < view->time.edge_count && !sink->failed; i++) {
        hotfn_record_edge e;
        hfn_view_edge(view, i, &e);
        if ((e.caller != HOTFN_NO_FUNCTION && places[e.caller] == UINT32_MAX) ||
            e.callee == HOTFN_NO_FUNCTION || places[e.callee] == UINT32_MAX) {
            continue;
        }
        hfn_sink_format(sink, "%s{", separator);
        put_place(sink, "caller", e.caller, places);
        hfn_sink_text(sink, ",");
        put_place(sink, "callee", e.callee, places);
        hfn_sink_format(sink, ",\"calls\":%" PRIu64 ",\"total_ns\":%" PRIu64 ",\"merged\":%s",
                        e.calls, e.total_ns, e.flags & HOTFN_NODE_MERGED ? "true" : "false");
        if (view->time.flags & HOTFN_TIMING_ALLOC) {
            put_alloc(sink, "total_alloc", &e.total_alloc);
        }
        hfn_sink_text(sink, "}");
        separator = ",\n";
    }
    hfn_sink_text(sink, "]");
}

/* From the nearest to the outermost, by name: they may not be listed. */
static void put_callers(const hfn_view *view, hfn_sink *sink, uint32_t node)
{
    char shown[8192];
    hotfn_record_function f;
    hotfn_record_node n;
    const char *separator = "";
    hfn_sink_text(sink, ",\"callers\":[");
    for (uint32_t at = node; at != HOTFN_NO_NODE; at = n.parent) {
        hfn_view_node(view, at, &n);
        if (at != node && n.function != HOTFN_NO_FUNCTION) {
            hfn_view_function(view, n.function, &f);
            hfn_sink_text(sink, separator);
            hfn_sink_json(sink, hfn_view_display(view, &f, shown, sizeof shown));
            separator = ",";
        }
    }
    hfn_sink_text(sink, "]");
}

static void put_slow_calls(const hfn_view *view, hfn_sink *sink, const uint32_t *places)
{
    hfn_sink_text(sink, ",\n\"slow_calls\":[");
    for (uint32_t i = 0; i < view->time.slow_count; i++) {
        hotfn_record_slow_call s = HOTFN_RECORD_SLOW_CALL_INIT;
        hotfn_record_get_slow_call(view->record, i, &s);
        hfn_sink_format(sink, "%s{\"start_ns\":%" PRIu64 ",\"duration_ns\":%" PRIu64,
                        i ? ",\n" : "\n", s.start_ns, s.duration_ns);
        hfn_sink_format(sink, ",\"thread\":%" PRIu32 ",", s.thread);
        put_listed(sink, s.function, places);
        put_callers(view, sink, s.node);
        hfn_sink_text(sink, "}");
    }
    hfn_sink_text(sink, "]");
}

/* Where each function stands in the list; UINT32_MAX: nowhere. */
static uint32_t *make_places(const hfn_view *view)
{
    size_t bytes = (view->info.function_count + 1u) * sizeof(uint32_t);
    uint32_t *places = hfn_alloc(&view->env, bytes);
    if (places) {
        memset(places, 0xff, bytes);
        for (uint32_t i = 0; i < view->limit; i++) {
            places[view->order[i]] = i;
        }
    }
    return places;
}

static bool write_json(const hfn_view *view, hfn_sink *sink)
{
    char shown[8192];
    uint32_t *places = make_places(view);
    if (!places) {
        return false;
    }
    put_record(view, sink);
    put_modules(view, sink);
    if (view->time.flags) {
        put_time_info(view, sink);
    }
    hfn_budget_json(view, sink);
    put_threads(view, sink);
    if (view->time.slow_count) {
        put_slow_calls(view, sink, places);
    }
    if (view->options.flags & HOTFN_EXPORT_EDGES) {
        put_edges(view, sink, places);
    }
    hfn_sink_text(sink, ",\n\"functions\":[");
    for (uint32_t i = 0; i < view->limit && !sink->failed; i++) {
        hfn_sink_text(sink, i ? ",\n" : "\n");
        put_function(view, sink, view->order[i], shown, sizeof shown);
    }
    hfn_sink_text(sink, "]}\n");
    hfn_free(&view->env, places, (view->info.function_count + 1u) * sizeof(uint32_t));
    return true;
}

const hfn_exporter hfn_exporter_json = {
    .name = "json",
    .extension = ".json",
    .about = "hotfn.report/1, every field of every function",
    .needs = HOTFN_NEEDS_FLAT,
    .write = write_json,
};
