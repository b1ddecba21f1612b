/* SPDX-License-Identifier: MIT */
/* Firefox Profiler's processed format, version 48 (docs-developer/CHANGELOG-formats.md of the
 * profiler: later versions upgrade it).  The samples of a thread are the stacks of its call tree;
 * the weight of a stack is its self time in milliseconds.  The format has tables in columns, so the
 * tree is read once for each column. */
#include "exporters/json_fields.h"

#include <inttypes.h>
#include <stdio.h>

typedef struct firefox {
    const hfn_view *view;
    hfn_sink *sink;
    hotfn_json_writer *out;
    uint32_t thread;
    uint32_t *indices;                 /* by node: its index among the nodes of its thread */
    uint32_t *first, *end;             /* the range of each thread's nodes */
    uint32_t node_count, sample_count; /* of the thread */
} firefox;

/* ---- Columns over the nodes of a thread. */

typedef hotfn_json *(*node_value_fn)(const firefox *x, const hotfn_record_node *n, uint32_t node);

/* Write "key":[...] with a value for each node, or for each node with self time. */
static void write_node_column(const firefox *x, const char *key, bool samples, node_value_fn create)
{
    hotfn_record_node n;
    hotfn_json_begin_array(x->out, key);
    for (uint32_t i = x->first[x->thread]; i < x->end[x->thread] && !x->sink->failed; i++) {
        hfn_view_node(x->view, i, &n);
        if (n.thread == x->thread && (!samples || n.self_ns > 0)) {
            hotfn_json_write(x->out, NULL, create(x, &n, i));
        }
    }
    hotfn_json_end(x->out);
}

static hotfn_json *create_milliseconds(uint64_t ns)
{
    char text[40];
    snprintf(text, sizeof text, "%" PRIu64 ".%06u", ns / 1000000, (unsigned)(ns % 1000000));
    return hotfn_json_create_raw(text);
}

static hotfn_json *create_index(const firefox *x, const hotfn_record_node *n, uint32_t node)
{
    (void)n;
    return hotfn_json_create_number(x->indices[node]);
}

static hotfn_json *create_weight(const firefox *x, const hotfn_record_node *n, uint32_t node)
{
    (void)x;
    (void)node;
    return create_milliseconds(n->self_ns);
}

static hotfn_json *create_function(const firefox *x, const hotfn_record_node *n, uint32_t node)
{
    (void)x;
    (void)node;
    return hotfn_json_create_number(n->function);
}

static hotfn_json *create_prefix(const firefox *x, const hotfn_record_node *n, uint32_t node)
{
    (void)node;
    return n->parent == HOTFN_NO_NODE ? hotfn_json_create_text(NULL)
                                      : hotfn_json_create_number(x->indices[n->parent]);
}

static hotfn_json *create_zero(const firefox *x, const hotfn_record_node *n, uint32_t node)
{
    (void)x;
    (void)n;
    (void)node;
    return hotfn_json_create_number(0);
}

/* A sample begins where the one before it ends; its length is its weight. */
static void write_sample_times(const firefox *x)
{
    uint64_t at_ns = 0;
    hotfn_record_node n;
    hotfn_json_begin_array(x->out, "time");
    for (uint32_t i = x->first[x->thread]; i < x->end[x->thread] && !x->sink->failed; i++) {
        hfn_view_node(x->view, i, &n);
        if (n.thread == x->thread && n.self_ns > 0) {
            hotfn_json_write(x->out, NULL, create_milliseconds(at_ns));
            at_ns += n.self_ns;
        }
    }
    hotfn_json_end(x->out);
}

/* ---- Tables of functions and strings, which version 48 repeats in each thread. */

static void write_repeated(const firefox *x, const char *key, const char *raw, uint32_t count)
{
    hotfn_json_begin_array(x->out, key);
    for (uint32_t i = 0; i < count && !x->sink->failed; i++) {
        hotfn_json_write(x->out, NULL, hotfn_json_create_raw(raw));
    }
    hotfn_json_end(x->out);
}

static void write_numbers(const firefox *x, const char *key, uint32_t from, uint32_t count)
{
    hotfn_json_begin_array(x->out, key);
    for (uint32_t i = 0; i < count && !x->sink->failed; i++) {
        hotfn_json_write(x->out, NULL, hotfn_json_create_number(from + i));
    }
    hotfn_json_end(x->out);
}

static void end_table(const firefox *x, uint32_t count)
{
    hotfn_json_write(x->out, "length", hotfn_json_create_number(count));
    hotfn_json_end(x->out);
}

static void write_frame_table(const firefox *x)
{
    static const struct {
        const char *key, *raw;
    } columns[] = {
        { "address", "-1" },          { "inlineDepth", "0" },     { "category", "0" },
        { "subcategory", "0" },       { "nativeSymbol", "null" }, { "innerWindowID", "null" },
        { "implementation", "null" }, { "line", "null" },         { "column", "null" },
    };
    uint32_t count = x->view->info.function_count;
    hotfn_json_begin_object(x->out, "frameTable");
    for (size_t i = 0; i < HFN_COUNT_OF(columns); i++) {
        write_repeated(x, columns[i].key, columns[i].raw, count);
    }
    write_numbers(x, "func", 0, count);
    end_table(x, count);
}

static void write_function_table(const firefox *x)
{
    uint32_t count = x->view->info.function_count;
    hotfn_record_function f;
    hotfn_json_begin_object(x->out, "funcTable");
    write_numbers(x, "name", 0, count);
    write_repeated(x, "isJS", "false", count);
    write_repeated(x, "relevantForJS", "false", count);
    hotfn_json_begin_array(x->out, "resource");
    for (uint32_t i = 0; i < count && !x->sink->failed; i++) {
        hfn_view_function(x->view, i, &f);
        hotfn_json_write(x->out, NULL, hotfn_json_create_number(f.module));
    }
    hotfn_json_end(x->out);
    write_repeated(x, "fileName", "null", count);
    write_repeated(x, "lineNumber", "null", count);
    write_repeated(x, "columnNumber", "null", count);
    end_table(x, count);
}

static void write_resource_table(const firefox *x)
{
    uint32_t modules = x->view->info.module_count;
    hotfn_json_begin_object(x->out, "resourceTable");
    write_numbers(x, "lib", 0, modules);
    write_numbers(x, "name", x->view->info.function_count, modules);
    write_repeated(x, "host", "null", modules);
    write_repeated(x, "type", "1", modules);
    end_table(x, modules);
}

/* The functions' names in the record's order, then the modules'. */
static void write_strings(const firefox *x)
{
    char shown[8192];
    hotfn_json_begin_array(x->out, "stringArray");
    for (uint32_t i = 0; i < x->view->info.function_count && !x->sink->failed; i++) {
        hotfn_record_function f;
        hfn_view_reach(x->view, i, x->view->info.function_count);
        hfn_view_function(x->view, i, &f);
        hotfn_json_write(
            x->out, NULL,
            hotfn_json_create_text(hfn_view_display(x->view, &f, shown, sizeof shown)));
    }
    for (uint32_t i = 0; i < x->view->info.module_count; i++) {
        hotfn_record_module m;
        hfn_view_module(x->view, i, &m);
        hotfn_json_write(x->out, NULL, hotfn_json_create_text(m.file));
    }
    hotfn_json_end(x->out);
}

/* ---- A thread. */

static void write_thread_facts(const firefox *x)
{
    hotfn_record_thread t;
    char name[sizeof t.name + 1], pid[16];
    hfn_view_thread(x->view, x->thread, &t);
    snprintf(name, sizeof name, "%.16s", t.name);
    snprintf(pid, sizeof pid, "%" PRIu32, t.pid);
    hotfn_json_write(x->out, "processType", hotfn_json_create_text("default"));
    hotfn_json_write(x->out, "processStartupTime", hotfn_json_create_number(0));
    hotfn_json_write(x->out, "processShutdownTime", hotfn_json_create_text(NULL));
    hotfn_json_write(x->out, "registerTime", hotfn_json_create_number(0));
    hotfn_json_write(x->out, "unregisterTime", hotfn_json_create_text(NULL));
    hotfn_json_write(x->out, "pausedRanges", hotfn_json_create_array());
    hotfn_json_write(x->out, "isMainThread", hotfn_json_create_bool(t.tid == t.pid));
    hotfn_json_write(x->out, "pid", hotfn_json_create_text(pid)); /* a string in this format */
    hotfn_json_write(x->out, "tid", hotfn_json_create_number(t.tid));
    hotfn_json_write(x->out, "name", hotfn_json_create_text(name[0] ? name : "thread"));
    hotfn_json_write(x->out, "markers",
                     hotfn_json_create_raw("{\"data\":[],\"name\":[],\"startTime\":[],"
                                           "\"endTime\":[],\"phase\":[],\"category\":[],"
                                           "\"length\":0}"));
    hotfn_json_write(x->out, "nativeSymbols",
                     hotfn_json_create_raw("{\"libIndex\":[],\"address\":[],\"name\":[],"
                                           "\"functionSize\":[],\"length\":0}"));
}

static void write_thread(const firefox *x)
{
    hotfn_json_begin_object(x->out, NULL);
    write_thread_facts(x);
    hotfn_json_begin_object(x->out, "samples");
    hotfn_json_write(x->out, "weightType", hotfn_json_create_text("tracing-ms"));
    write_node_column(x, "stack", true, create_index);
    write_sample_times(x);
    write_node_column(x, "weight", true, create_weight);
    end_table(x, x->sample_count);
    hotfn_json_begin_object(x->out, "stackTable");
    write_node_column(x, "frame", false, create_function);
    write_node_column(x, "prefix", false, create_prefix);
    write_node_column(x, "category", false, create_zero);
    write_node_column(x, "subcategory", false, create_zero);
    end_table(x, x->node_count);
    write_frame_table(x);
    write_function_table(x);
    write_resource_table(x);
    write_strings(x);
    hotfn_json_end(x->out);
}

static void count_nodes(firefox *x)
{
    hotfn_record_node n;
    x->node_count = x->sample_count = 0;
    for (uint32_t i = x->first[x->thread]; i < x->end[x->thread]; i++) {
        hfn_view_node(x->view, i, &n);
        if (n.thread == x->thread) {
            x->indices[i] = x->node_count++;
            x->sample_count += n.self_ns > 0;
        }
    }
}

/* ---- The file. */

static void write_libs(const firefox *x)
{
    hotfn_json_begin_array(x->out, "libs");
    for (uint32_t i = 0; i < x->view->info.module_count; i++) {
        hotfn_json *o = hotfn_json_create_object();
        hotfn_record_module m;
        hfn_view_module(x->view, i, &m);
        hfn_add_text(o, "arch", "");
        hfn_add_text(o, "name", m.file);
        hfn_add_text(o, "debugName", m.file);
        hfn_add_text(o, "path", m.path);
        hfn_add_text(o, "debugPath", m.path);
        hfn_add_text(o, "breakpadId", "");
        hfn_add_id(o, "codeId", &m);
        hotfn_json_write(x->out, NULL, o);
    }
    hotfn_json_end(x->out);
}

static hotfn_json *create_meta(const hfn_view *view)
{
    static const char *const empty[] = { "abi", "misc", "oscpu", "platform", "toolkit" };
    hotfn_json *o = hotfn_json_create_object();
    hfn_add_number(o, "version", 29);
    hfn_add_number(o, "preprocessedProfileVersion", 48);
    hfn_add_number(o, "interval", 1);
    hfn_add_number(o, "startTime", view->info.start_ns / 1000000);
    hfn_add_number(o, "processType", 0);
    hfn_add_number(o, "stackwalk", 0);
    hfn_add_bool(o, "debug", false);
    hfn_add_bool(o, "symbolicated", true);
    for (size_t i = 0; i < HFN_COUNT_OF(empty); i++) {
        hfn_add_text(o, empty[i], "");
    }
    hfn_add_text(o, "product", view->info.command[0] ? view->info.command : "hotfn");
    hfn_add_text(o, "importedFrom", "hotfn");
    hfn_add_raw(o, "extensions", "{\"id\":[],\"name\":[],\"baseURL\":[],\"length\":0}");
    hfn_add_raw(o, "categories",
                "[{\"name\":\"Other\",\"color\":\"grey\",\"subcategories\":[\"Other\"]}]");
    hotfn_json_add(o, "markerSchema", hotfn_json_create_array());
    return o;
}

static void write_file(firefox *x)
{
    hotfn_json_begin_object(x->out, NULL);
    hotfn_json_write(x->out, "meta", create_meta(x->view));
    write_libs(x);
    hotfn_json_write(x->out, "pages", hotfn_json_create_array());
    hotfn_json_begin_array(x->out, "threads");
    for (x->thread = 0; x->thread < x->view->info.thread_count; x->thread++) {
        count_nodes(x);
        write_thread(x);
    }
    hotfn_json_end(x->out);
    hotfn_json_end(x->out);
}

static bool write_firefox(const hfn_view *view, hfn_sink *sink)
{
    size_t words = view->time.node_count + 2 * (size_t)view->info.thread_count;
    firefox x = { .view = view, .sink = sink, .out = hfn_json_open(sink, 0) };
    x.indices = hfn_allocate_zeroed(&view->env, words * sizeof *x.indices);
    bool ok = x.indices && x.out;
    if (ok) {
        x.first = x.indices + view->time.node_count;
        x.end = x.first + view->info.thread_count;
        hfn_view_node_ranges(view, x.first, x.end);
        write_file(&x);
    }
    if (x.out) {
        ok = hfn_json_close(x.out) && ok;
    }
    hfn_free_memory(&view->env, x.indices, words * sizeof *x.indices);
    return ok;
}

const hfn_exporter hfn_exporter_firefox = {
    .name = "firefox",
    .extension = ".firefox.json",
    .about = "profiler.firefox.com: stacks of each thread",
    .needs = HOTFN_NEEDS_TIMES | HOTFN_NEEDS_TREE,
    .write = write_firefox,
};
