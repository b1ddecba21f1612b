/* SPDX-License-Identifier: MIT */
/* Firefox Profiler's processed format, version 48 (docs-developer/CHANGELOG-formats.md of the
 * profiler: later versions upgrade it).  A thread's samples are its call tree's stacks, weighed by
 * their own milliseconds; tables are columns, so the tree is walked once a column. */
#include "exporters/exporter.h"

#include <inttypes.h>
#include <stdio.h>

typedef struct thread_nodes {
    const hfn_view *view;
    hfn_sink *sink;
    uint32_t thread;
    uint32_t *places;      /* a node's number among its thread's */
    uint32_t *first, *end; /* where each thread's nodes lie */
    uint32_t count, samples;
} thread_nodes;

typedef void (*put_value_fn)(const thread_nodes *t, const hotfn_record_node *n, uint32_t node);

/* "key":[value,...] over the thread's nodes; samples: only those with time of their own. */
static void put_column(const thread_nodes *t, const char *key, bool samples, put_value_fn put)
{
    const char *separator = "";
    hotfn_record_node n;
    hfn_sink_format(t->sink, "\"%s\":[", key);
    for (uint32_t i = t->first[t->thread]; i < t->end[t->thread] && !t->sink->failed; i++) {
        hfn_view_node(t->view, i, &n);
        if (n.thread == t->thread && (!samples || n.self_ns > 0)) {
            hfn_sink_text(t->sink, separator);
            put(t, &n, i);
            separator = ",";
        }
    }
    hfn_sink_text(t->sink, "],");
}

static void put_own(const thread_nodes *t, const hotfn_record_node *n, uint32_t node)
{
    (void)n;
    hfn_sink_format(t->sink, "%" PRIu32, t->places[node]);
}

static void put_weight(const thread_nodes *t, const hotfn_record_node *n, uint32_t node)
{
    (void)node;
    hfn_sink_format(t->sink, "%" PRIu64 ".%06u", n->self_ns / 1000000,
                    (unsigned)(n->self_ns % 1000000));
}

static void put_function(const thread_nodes *t, const hotfn_record_node *n, uint32_t node)
{
    (void)node;
    hfn_sink_format(t->sink, "%" PRIu32, n->function);
}

static void put_prefix(const thread_nodes *t, const hotfn_record_node *n, uint32_t node)
{
    (void)node;
    if (n->parent == HOTFN_NO_NODE) {
        hfn_sink_text(t->sink, "null");
    } else {
        hfn_sink_format(t->sink, "%" PRIu32, t->places[n->parent]);
    }
}

static void put_zero(const thread_nodes *t, const hotfn_record_node *n, uint32_t node)
{
    (void)n;
    (void)node;
    hfn_sink_text(t->sink, "0");
}

/* One after the other, as if each were a stretch of time. */
static void put_times(const thread_nodes *t)
{
    const char *separator = "";
    uint64_t at = 0;
    hotfn_record_node n;
    hfn_sink_text(t->sink, "\"time\":[");
    for (uint32_t i = t->first[t->thread]; i < t->end[t->thread] && !t->sink->failed; i++) {
        hfn_view_node(t->view, i, &n);
        if (n.thread == t->thread && n.self_ns > 0) {
            hfn_sink_format(t->sink, "%s%" PRIu64 ".%06u", separator, at / 1000000,
                            (unsigned)(at % 1000000));
            at += n.self_ns;
            separator = ",";
        }
    }
    hfn_sink_text(t->sink, "],");
}

/* ---- The functions' tables: the same in each thread, where version 48 has its strings. */

static void put_repeated(hfn_sink *sink, const char *key, const char *value, uint32_t count)
{
    hfn_sink_format(sink, "\"%s\":[", key);
    for (uint32_t i = 0; i < count && !sink->failed; i++) {
        hfn_sink_text(sink, i ? "," : "");
        hfn_sink_text(sink, value);
    }
    hfn_sink_text(sink, "],");
}

static void put_numbers(hfn_sink *sink, const char *key, uint32_t count)
{
    hfn_sink_format(sink, "\"%s\":[", key);
    for (uint32_t i = 0; i < count && !sink->failed; i++) {
        hfn_sink_format(sink, i ? ",%" PRIu32 : "%" PRIu32, i);
    }
    hfn_sink_text(sink, "],");
}

static void put_length(hfn_sink *sink, uint32_t count)
{
    hfn_sink_format(sink, "\"length\":%" PRIu32 "},\n", count);
}

static void put_resources(const hfn_view *view, hfn_sink *sink)
{
    uint32_t modules = view->info.module_count;
    hfn_sink_text(sink, "\"resourceTable\":{");
    put_numbers(sink, "lib", modules);
    hfn_sink_text(sink, "\"name\":[");
    for (uint32_t i = 0; i < modules; i++) {
        hfn_sink_format(sink, i ? ",%" PRIu32 : "%" PRIu32, view->info.function_count + i);
    }
    hfn_sink_text(sink, "],");
    put_repeated(sink, "host", "null", modules);
    put_repeated(sink, "type", "1", modules);
    put_length(sink, modules);
}

static void put_module_of_each(const hfn_view *view, hfn_sink *sink)
{
    hotfn_record_function f;
    hfn_sink_text(sink, "\"resource\":[");
    for (uint32_t i = 0; i < view->info.function_count && !sink->failed; i++) {
        hfn_view_function(view, i, &f);
        hfn_sink_format(sink, i ? ",%" PRIu32 : "%" PRIu32, f.module);
    }
    hfn_sink_text(sink, "],");
}

static void put_function_tables(const hfn_view *view, hfn_sink *sink)
{
    uint32_t count = view->info.function_count;
    hfn_sink_text(sink, "\"frameTable\":{");
    put_repeated(sink, "address", "-1", count);
    put_repeated(sink, "inlineDepth", "0", count);
    put_repeated(sink, "category", "0", count);
    put_repeated(sink, "subcategory", "0", count);
    put_numbers(sink, "func", count);
    put_repeated(sink, "nativeSymbol", "null", count);
    put_repeated(sink, "innerWindowID", "null", count);
    put_repeated(sink, "implementation", "null", count);
    put_repeated(sink, "line", "null", count);
    put_repeated(sink, "column", "null", count);
    put_length(sink, count);
    hfn_sink_text(sink, "\"funcTable\":{");
    put_numbers(sink, "name", count);
    put_repeated(sink, "isJS", "false", count);
    put_repeated(sink, "relevantForJS", "false", count);
    put_module_of_each(view, sink);
    put_repeated(sink, "fileName", "null", count);
    put_repeated(sink, "lineNumber", "null", count);
    put_repeated(sink, "columnNumber", "null", count);
    put_length(sink, count);
    put_resources(view, sink);
}

/* Functions by their number, then modules. */
static void put_strings(const hfn_view *view, hfn_sink *sink)
{
    char shown[8192];
    hotfn_record_function f;
    hotfn_record_module m;
    hfn_sink_text(sink, "\"stringArray\":[");
    for (uint32_t i = 0; i < view->info.function_count && !sink->failed; i++) {
        hfn_view_function(view, i, &f);
        hfn_sink_text(sink, i ? "," : "");
        hfn_sink_json(sink, hfn_view_display(view, &f, shown, sizeof shown));
    }
    for (uint32_t i = 0; i < view->info.module_count; i++) {
        hfn_view_module(view, i, &m);
        hfn_sink_text(sink, i || view->info.function_count ? "," : "");
        hfn_sink_json(sink, m.file);
    }
    hfn_sink_text(sink, "]");
}

/* ---- A thread. */

static void put_head(const thread_nodes *t)
{
    hotfn_record_thread thread;
    char name[sizeof thread.name + 1];
    hfn_view_thread(t->view, t->thread, &thread);
    snprintf(name, sizeof name, "%.16s", thread.name);
    hfn_sink_format(t->sink,
                    "{\"processType\":\"default\",\"processStartupTime\":0,"
                    "\"processShutdownTime\":null,\"registerTime\":0,\"unregisterTime\":null,"
                    "\"pausedRanges\":[],\"isMainThread\":%s,\"pid\":\"%" PRIu32
                    "\",\"tid\":%" PRIu32,
                    thread.tid == thread.pid ? "true" : "false", thread.pid, thread.tid);
    hfn_sink_json_key(t->sink, "name", name[0] ? name : "thread");
    hfn_sink_text(t->sink,
                  ",\n\"markers\":{\"data\":[],\"name\":[],\"startTime\":[],\"endTime\":[],"
                  "\"phase\":[],\"category\":[],\"length\":0},\n");
    hfn_sink_text(t->sink, "\"nativeSymbols\":{\"libIndex\":[],\"address\":[],\"name\":[],"
                           "\"functionSize\":[],\"length\":0},\n");
}

static void put_thread(thread_nodes *t)
{
    put_head(t);
    hfn_sink_text(t->sink, "\"samples\":{\"weightType\":\"tracing-ms\",");
    put_column(t, "stack", true, put_own);
    put_times(t);
    put_column(t, "weight", true, put_weight);
    put_length(t->sink, t->samples);
    hfn_sink_text(t->sink, "\"stackTable\":{");
    put_column(t, "frame", false, put_function);
    put_column(t, "prefix", false, put_prefix);
    put_column(t, "category", false, put_zero);
    put_column(t, "subcategory", false, put_zero);
    put_length(t->sink, t->count);
    put_function_tables(t->view, t->sink);
    put_strings(t->view, t->sink);
    hfn_sink_text(t->sink, "}");
}

static void count_nodes(thread_nodes *t)
{
    hotfn_record_node n;
    t->count = t->samples = 0;
    for (uint32_t i = t->first[t->thread]; i < t->end[t->thread]; i++) {
        hfn_view_node(t->view, i, &n);
        if (n.thread == t->thread) {
            t->places[i] = t->count++;
            t->samples += n.self_ns > 0;
        }
    }
}

static void put_libs(const hfn_view *view, hfn_sink *sink)
{
    hotfn_record_module m;
    hfn_sink_text(sink, "\"libs\":[");
    for (uint32_t i = 0; i < view->info.module_count; i++) {
        hfn_view_module(view, i, &m);
        hfn_sink_text(sink, i ? ",\n{\"arch\":\"\"" : "{\"arch\":\"\"");
        hfn_sink_json_key(sink, "name", m.file);
        hfn_sink_json_key(sink, "debugName", m.file);
        hfn_sink_json_key(sink, "path", m.path);
        hfn_sink_json_key(sink, "debugPath", m.path);
        hfn_sink_text(sink, ",\"breakpadId\":\"\",\"codeId\":\"");
        for (uint32_t k = 0; k < m.id_bytes && k < sizeof m.id; k++) {
            hfn_sink_format(sink, "%02x", m.id[k]);
        }
        hfn_sink_text(sink, "\"}");
    }
    hfn_sink_text(sink, "],\n");
}

static void put_meta(const hfn_view *view, hfn_sink *sink)
{
    hfn_sink_format(sink,
                    "{\"meta\":{\"version\":29,\"preprocessedProfileVersion\":48,\"interval\":1,"
                    "\"startTime\":%" PRIu64 ",\"processType\":0,\"stackwalk\":0,\"debug\":false,"
                    "\"symbolicated\":true,\"abi\":\"\",\"misc\":\"\",\"oscpu\":\"\","
                    "\"platform\":\"\",\"toolkit\":\"\"",
                    view->info.start_ns / 1000000);
    hfn_sink_json_key(sink, "product", view->info.command[0] ? view->info.command : "hotfn");
    hfn_sink_text(sink,
                  ",\"importedFrom\":\"hotfn\",\"extensions\":{\"id\":[],\"name\":[],"
                  "\"baseURL\":[],\"length\":0},\"categories\":[{\"name\":\"Other\","
                  "\"color\":\"grey\",\"subcategories\":[\"Other\"]}],\"markerSchema\":[]},\n");
}

static bool write_firefox(const hfn_view *view, hfn_sink *sink)
{
    thread_nodes t = { .view = view, .sink = sink };
    size_t words = view->time.node_count + 2 * (size_t)view->info.thread_count;
    t.places = hfn_alloc(&view->env, words * sizeof *t.places);
    if (!t.places) {
        return false;
    }
    t.first = t.places + view->time.node_count;
    t.end = t.first + view->info.thread_count;
    hfn_view_node_ranges(view, t.first, t.end);
    put_meta(view, sink);
    put_libs(view, sink);
    hfn_sink_text(sink, "\"pages\":[],\n\"threads\":[");
    for (t.thread = 0; t.thread < view->info.thread_count; t.thread++) {
        count_nodes(&t);
        hfn_sink_text(sink, t.thread ? ",\n" : "\n");
        put_thread(&t);
    }
    hfn_sink_text(sink, "]}\n");
    hfn_free(&view->env, t.places, words * sizeof *t.places);
    return true;
}

const hfn_exporter hfn_exporter_firefox = {
    .name = "firefox",
    .extension = ".firefox.json",
    .about = "profiler.firefox.com: stacks of each thread",
    .needs = HOTFN_NEEDS_TIMES | HOTFN_NEEDS_TREE,
    .write = write_firefox,
};
