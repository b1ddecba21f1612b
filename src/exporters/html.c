/* SPDX-License-Identifier: MIT */
/* One page with everything in it: html/page.js shows what stands here as JSON, in columns, since a
 * record may hold tens of thousands of functions.  No name can end the script element: every "<" in a
 * string is written as \u003c.  Functions are numbered as in the record. */
#include "exporters/budget.h"
#include "exporters/html/page.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MOST_NODES 200000u /* in a page; past that, places with hardly any time are left out */
#define LEAST_PART 50000u  /* of the time, or of the bytes */

/* Of a node with all below it. */
typedef struct whole {
    uint64_t ns, bytes;
} whole;

typedef struct page {
    const hfn_view *view;
    hfn_sink *sink;
    uint32_t *places; /* a node's place in the page, UINT32_MAX: left out */
    whole *whole, all;
    uint32_t left_out;
    uint64_t *buckets;
    char shown[8192];
} page;

/* ---- Columns. */

typedef void (*put_fn)(page *p, uint32_t index);

static void put_column(page *p, const char *key, uint32_t count, put_fn put)
{
    hfn_sink_format(p->sink, "\"%s\":[", key);
    for (uint32_t i = 0; i < count && !p->sink->failed; i++) {
        hfn_sink_text(p->sink, i ? "," : "");
        put(p, i);
    }
    hfn_sink_text(p->sink, "]");
}

static void put_number(page *p, uint64_t value)
{
    hfn_sink_format(p->sink, "%" PRIu64, value);
}

static void put_optional(page *p, bool there, uint64_t value)
{
    if (there) {
        put_number(p, value);
    } else {
        hfn_sink_text(p->sink, "null");
    }
}

/* ---- Functions. */

static void put_name(page *p, uint32_t i)
{
    hotfn_record_function f;
    hfn_view_function(p->view, i, &f);
    hfn_sink_json_page(p->sink, hfn_view_display(p->view, &f, p->shown, sizeof p->shown));
}

static void put_module_of(page *p, uint32_t i)
{
    hotfn_record_function f;
    hfn_view_function(p->view, i, &f);
    put_number(p, f.module);
}

static void put_rva(page *p, uint32_t i)
{
    hotfn_record_function f;
    hfn_view_function(p->view, i, &f);
    put_number(p, f.rva);
}

static void put_calls(page *p, uint32_t i)
{
    hotfn_record_function f;
    hfn_view_function(p->view, i, &f);
    put_optional(p, f.counted, f.calls);
}

/* Why it was not counted, or not timed. */
static void put_why(page *p, uint32_t i)
{
    hotfn_record_function f;
    hotfn_record_timing t;
    hfn_view_function(p->view, i, &f);
    hfn_view_timing(p->view, i, &t);
    if (!f.counted) {
        hfn_sink_json_page(p->sink, f.reason[0] ? f.reason : hfn_state_name(f.state));
    } else if (hfn_view_at_least(p->view, i)) {
        hfn_sink_text(p->sink, "\"unhooked for a while to keep the budget: calls are missing\"");
    } else if (p->view->time.flags && t.timing == HOTFN_TIMING_COUNT_ONLY) {
        hfn_sink_json_page(p->sink, t.reason_text[0] ? t.reason_text : t.reason);
    } else {
        hfn_sink_text(p->sink, "\"\"");
    }
}

#define TIME_COLUMN(name, field)                                                                   \
    static void put_##name(page *p, uint32_t i)                                                    \
    {                                                                                              \
        hotfn_record_timing t;                                                                     \
        hfn_view_timing(p->view, i, &t);                                                           \
        put_optional(p, t.timed_calls > 0, t.field);                                               \
    }
TIME_COLUMN(total, total_ns)
TIME_COLUMN(self, self_ns)
TIME_COLUMN(min, min_ns)
TIME_COLUMN(max, max_ns)
TIME_COLUMN(p50, p50_ns)
TIME_COLUMN(p90, p90_ns)
TIME_COLUMN(p99, p99_ns)

TIME_COLUMN(open, open_calls)

static void put_timing(page *p, uint32_t i)
{
    hotfn_record_timing t;
    hfn_view_timing(p->view, i, &t);
    put_number(p, t.timing);
}

static void put_functions(page *p)
{
    static const struct {
        const char *key;
        put_fn put;
    } columns[] = {
        { "name", put_name },   { "module", put_module_of }, { "rva", put_rva },
        { "calls", put_calls }, { "why", put_why },          { "timing", put_timing },
        { "total", put_total }, { "self", put_self },        { "min", put_min },
        { "max", put_max },     { "p50", put_p50 },          { "p90", put_p90 },
        { "p99", put_p99 },     { "open", put_open },
    };
    size_t count = p->view->time.flags ? HFN_COUNT_OF(columns) : 6;
    hfn_sink_text(p->sink, ",\n\"functions\":{");
    for (size_t i = 0; i < count; i++) {
        hfn_sink_text(p->sink, i ? ",\n" : "\n");
        put_column(p, columns[i].key, p->view->info.function_count, columns[i].put);
    }
    hfn_sink_text(p->sink, "}");
}

/* ---- Histograms: bucket, count, bucket, count ... */

static void put_histograms(page *p)
{
    const char *separator = "\n";
    hfn_sink_text(p->sink, ",\n\"histograms\":{");
    for (uint32_t i = 0; p->view->time.flags && i < p->view->info.function_count; i++) {
        const char *comma = "";
        hotfn_record_timing t;
        hfn_view_timing(p->view, i, &t);
        if (t.timed_calls == 0) {
            continue;
        }
        hotfn_record_get_histogram(p->view->record, i, p->buckets);
        hfn_sink_format(p->sink, "%s\"%" PRIu32 "\":[", separator, i);
        for (uint32_t k = 0; k < HOTFN_HISTOGRAM_BUCKETS; k++) {
            if (p->buckets[k] > 0) {
                hfn_sink_format(p->sink, "%s%" PRIu32 ",%" PRIu64, comma, k, p->buckets[k]);
                comma = ",";
            }
        }
        hfn_sink_text(p->sink, "]");
        separator = ",\n";
    }
    hfn_sink_text(p->sink, "}");
}

static void put_allocs(page *p)
{
    if (!(p->view->time.flags & HOTFN_TIMING_ALLOC)) {
        return;
    }
    hfn_sink_text(p->sink, ",\n\"allocs\":[");
    for (uint32_t i = 0; i < p->view->info.function_count && !p->sink->failed; i++) {
        hotfn_record_timing t;
        hfn_view_timing(p->view, i, &t);
        hfn_sink_format(p->sink, "%s[%" PRIu64 ",%" PRIu64, i ? "," : "",
                        t.total_alloc.allocated_bytes, t.total_alloc.allocated_blocks);
        hfn_sink_format(p->sink, ",%" PRIu64 ",%" PRIu64, t.total_alloc.freed_bytes,
                        t.total_alloc.freed_blocks);
        hfn_sink_format(p->sink, ",%" PRIu64 ",%" PRIu64 "]", t.self_alloc.allocated_bytes,
                        t.self_alloc.allocated_blocks);
    }
    hfn_sink_text(p->sink, "]");
}

/* ---- Tree and edges. */

/* Of a call that was open at the end (main, when exit() was called) only what lies below is known. */
static void sum_whole(page *p)
{
    hotfn_record_node n;
    for (uint32_t i = p->view->time.node_count; i-- > 0;) {
        hfn_view_node(p->view, i, &n);
        whole *w = &p->whole[i];
        w->ns = n.total_ns > w->ns + n.self_ns ? n.total_ns : w->ns + n.self_ns;
        w->bytes += n.self_alloc.allocated_bytes;
        p->all.ns += n.parent == HOTFN_NO_NODE ? w->ns : 0;
        p->all.bytes += n.self_alloc.allocated_bytes;
        if (n.parent != HOTFN_NO_NODE) {
            p->whole[n.parent].ns += w->ns;
            p->whole[n.parent].bytes += w->bytes;
        }
    }
}

static void choose_nodes(page *p)
{
    bool all = p->view->time.node_count <= MOST_NODES;
    uint32_t place = 0;
    hotfn_record_node n;
    for (uint32_t i = 0; i < p->view->time.node_count; i++) {
        hfn_view_node(p->view, i, &n);
        bool kept = (all || p->whole[i].ns > p->all.ns / LEAST_PART ||
                     p->whole[i].bytes > p->all.bytes / LEAST_PART) &&
                    n.function != HOTFN_NO_FUNCTION &&
                    (n.parent == HOTFN_NO_NODE || p->places[n.parent] != UINT32_MAX);
        p->places[i] = kept ? place++ : UINT32_MAX;
        p->left_out += !kept;
    }
}

/* One column of the nodes that are kept; field is taken from the node by its number. */
enum {
    NODE_PARENT,
    NODE_FUNCTION,
    NODE_THREAD,
    NODE_CALLS,
    NODE_TOTAL,
    NODE_SELF,
    NODE_BYTES,
    NODE_BELOW
};

static void put_node_field(page *p, const hotfn_record_node *n, uint32_t index, int field)
{
    switch (field) {
    case NODE_PARENT:
        if (n->parent == HOTFN_NO_NODE) {
            hfn_sink_text(p->sink, "-1");
        } else {
            put_number(p, p->places[n->parent]);
        }
        break;
    case NODE_FUNCTION: put_number(p, n->function); break;
    case NODE_THREAD: put_number(p, n->thread); break;
    case NODE_CALLS: put_number(p, n->calls); break;
    case NODE_TOTAL: put_number(p, p->whole[index].ns); break;
    case NODE_BYTES: put_number(p, n->self_alloc.allocated_bytes); break;
    case NODE_BELOW: put_number(p, p->whole[index].bytes); break;
    default: put_number(p, n->self_ns);
    }
}

static void put_nodes(page *p)
{
    static const char *const keys[] = { "parent", "function", "thread", "calls",
                                        "total",  "self",     "bytes",  "below" };
    int fields = p->view->time.flags & HOTFN_TIMING_ALLOC ? NODE_BELOW + 1 : NODE_BYTES;
    hotfn_record_node n;
    hfn_sink_text(p->sink, ",\n\"nodes\":{");
    for (int field = 0; field < fields; field++) {
        const char *separator = "";
        hfn_sink_format(p->sink, "%s\"%s\":[", field ? ",\n" : "\n", keys[field]);
        for (uint32_t i = 0; i < p->view->time.node_count && !p->sink->failed; i++) {
            if (p->places[i] == UINT32_MAX) {
                continue;
            }
            hfn_view_node(p->view, i, &n);
            hfn_sink_text(p->sink, separator);
            put_node_field(p, &n, i, field);
            separator = ",";
        }
        hfn_sink_text(p->sink, "]");
    }
    hfn_sink_text(p->sink, "}");
}

static void put_function_number(page *p, uint32_t function)
{
    hfn_sink_format(p->sink, "%" PRId64, function == HOTFN_NO_FUNCTION ? -1 : (int64_t)function);
}

#define EDGE_COLUMN(name, expression)                                                              \
    static void put_edge_##name(page *p, uint32_t i)                                               \
    {                                                                                              \
        hotfn_record_edge e;                                                                       \
        hfn_view_edge(p->view, i, &e);                                                             \
        expression;                                                                                \
    }
EDGE_COLUMN(caller, put_function_number(p, e.caller))
EDGE_COLUMN(callee, put_function_number(p, e.callee))
EDGE_COLUMN(calls, put_number(p, e.calls))
EDGE_COLUMN(total, put_number(p, e.total_ns))

static void put_edges(page *p)
{
    uint32_t count = p->view->time.edge_count;
    hfn_sink_text(p->sink, ",\n\"edges\":{\n");
    put_column(p, "caller", count, put_edge_caller);
    hfn_sink_text(p->sink, ",\n");
    put_column(p, "callee", count, put_edge_callee);
    hfn_sink_text(p->sink, ",\n");
    put_column(p, "calls", count, put_edge_calls);
    hfn_sink_text(p->sink, ",\n");
    put_column(p, "total", count, put_edge_total);
    hfn_sink_text(p->sink, "}");
}

/* ---- The run. */

static void put_module(page *p, uint32_t i)
{
    hotfn_record_module m;
    hfn_view_module(p->view, i, &m);
    hfn_sink_json_page(p->sink, m.file);
}

static void put_thread(page *p, uint32_t i)
{
    hotfn_record_thread t;
    char name[sizeof t.name + 1] = "";
    hfn_view_thread(p->view, i, &t);
    memcpy(name, t.name, sizeof t.name);
    hfn_sink_text(p->sink, "\n{\"name\":");
    hfn_sink_json_page(p->sink, name);
    hfn_sink_format(p->sink, ",\"tid\":%" PRIu32 ",\"pid\":%" PRIu32 ",\"calls\":%" PRIu64, t.tid,
                    t.pid, t.calls);
    hfn_sink_format(p->sink, ",\"busy_ns\":%" PRIu64 "}", t.busy_ns);
}

static void put_slow(page *p, uint32_t i)
{
    hotfn_record_slow_call s = HOTFN_RECORD_SLOW_CALL_INIT;
    hotfn_record_get_slow_call(p->view->record, i, &s);
    bool placed = s.node != HOTFN_NO_NODE && p->places[s.node] != UINT32_MAX;
    hfn_sink_text(p->sink, "\n[");
    put_function_number(p, s.function);
    hfn_sink_format(p->sink, ",%" PRIu32 ",%" PRIu64 ",%" PRIu64, s.thread, s.start_ns,
                    s.duration_ns);
    hfn_sink_format(p->sink, ",%" PRId64 "]", placed ? (int64_t)p->places[s.node] : -1);
}

/* Which functions' counts are lower bounds, and what was done to keep the budget: as in the report. */
static void put_budget(page *p)
{
    const char *separator = "";
    hfn_sink_text(p->sink, ",\n\"at_least\":[");
    for (uint32_t i = 0; i < p->view->info.function_count; i++) {
        if (hfn_view_at_least(p->view, i)) {
            hfn_sink_format(p->sink, "%s%" PRIu32, separator, i);
            separator = ",";
        }
    }
    hfn_sink_text(p->sink, "]");
    hfn_budget_json_page(p->view, p->sink);
}

static void put_note(page *p, const char **separator, uint64_t count, const char *words)
{
    if (count > 0) {
        hfn_sink_format(p->sink, "%s\"%" PRIu64 " %s\"", *separator, count, words);
        *separator = ",";
    }
}

static void put_sentence(page *p, const char **separator, const char *note)
{
    if (note[0]) {
        hfn_sink_text(p->sink, *separator);
        hfn_sink_json_page(p->sink, note);
        *separator = ",";
    }
}

static void put_repair_note(page *p, const char **separator)
{
    const char *lost = p->view->info.repaired;
    char note[600];
    if (lost[0]) {
        snprintf(note, sizeof note, "this record was repaired, and lost: %.500s", lost);
        hfn_sink_json_page(p->sink, note);
        *separator = ",";
    }
}

static void put_notes(page *p)
{
    const hotfn_record_time_info *t = &p->view->time;
    const char *separator = "";
    char room[200];
    hfn_sink_text(p->sink, ",\n\"notes\":[");
    put_repair_note(p, &separator);
    if (t->note[0]) {
        hfn_sink_text(p->sink, separator);
        hfn_sink_json_page(p->sink, t->note);
        separator = ",";
    } else if (t->clock == HOTFN_CLOCK_MERGED) {
        hfn_sink_text(p->sink, separator);
        hfn_sink_text(p->sink, "\"times of merged runs, without the hooks' own cost in each\"");
        separator = ",";
    } else if (t->flags) {
        hfn_sink_text(p->sink, separator);
        hfn_sink_format(
            p->sink,
            "\"a hook's own cost is %.1f ns a timed call, %.1f ns a counted one; times are "
            "without it, unless --raw asked for it\"",
            t->cost_inside_ns + t->cost_outside_ns, t->count_cost_ns);
        separator = ",";
    }
    if (t->flags & HOTFN_TIMING_SAMPLED) {
        put_note(p, &separator, t->sample_mean,
                 "is the N of one call in N timed, more of long ones, fewer of short ones: ~ marks "
                 "estimates");
    }
    put_sentence(p, &separator, hfn_view_self_note(p->view, room));
    put_sentence(p, &separator, hfn_view_cost_note(p->view, room));
    put_note(p, &separator, p->view->info.threads_lost, "threads' calls were lost");
    put_note(p, &separator, t->nodes_merged, "entries found no place of their own in the tree");
    put_note(p, &separator, p->left_out, "places of the tree with hardly any time are left out");
    put_note(p, &separator, t->histograms_lost, "functions have no percentiles");
    put_note(p, &separator, t->slow_lost, "slow calls were overwritten by later ones");
    put_note(p, &separator, t->abandoned_exits, "calls were left by longjmp or an exception");
    put_note(p, &separator, t->clock_went_back, "exits had a clock before their entry's");
    hfn_sink_text(p->sink, "]");
}

static void put_run(page *p)
{
    const hotfn_record_info *info = &p->view->info;
    uint64_t begin = info->window_end_ns ? info->window_start_ns : info->start_ns;
    uint64_t end = info->window_end_ns ? info->window_end_ns : info->end_ns;
    hfn_sink_text(p->sink, "{\"command\":");
    hfn_sink_json_page(p->sink, info->command[0] ? info->command : "(unknown command)");
    hfn_sink_format(p->sink, ",\"state\":\"%s\",\"timed\":%s,\"calls\":%" PRIu64,
                    hotfn_record_get_state_name(info->state),
                    p->view->time.flags ? "true" : "false", p->view->total_calls);
    hfn_sink_format(p->sink, ",\"wall_ns\":%" PRIu64 ",\"busy_ns\":%" PRIu64,
                    end > begin ? end - begin : 0, p->view->time.busy_ns);
    hfn_sink_format(p->sink, ",\"slow_ns\":%" PRIu64 ",\"ticks_per_second\":%" PRIu64,
                    p->view->time.slow_ns, p->view->time.ticks_per_second);
    put_notes(p);
    hfn_sink_text(p->sink, ",\n");
    put_column(p, "modules", info->module_count, put_module);
    hfn_sink_text(p->sink, ",\n");
    put_column(p, "threads", info->thread_count, put_thread);
    hfn_sink_text(p->sink, ",\n");
    put_column(p, "slow", p->view->time.slow_count, put_slow);
}

static bool write_html(const hfn_view *view, hfn_sink *sink)
{
    size_t place_bytes = view->time.node_count * sizeof(uint32_t);
    size_t whole_bytes = view->time.node_count * sizeof(whole);
    size_t bucket_bytes = HOTFN_HISTOGRAM_BUCKETS * sizeof(uint64_t);
    page *p = hfn_alloc(&view->env, sizeof *p);
    if (!p) {
        return false;
    }
    p->view = view;
    p->sink = sink;
    p->places = hfn_alloc(&view->env, place_bytes);
    p->whole = hfn_alloc(&view->env, whole_bytes);
    p->buckets = hfn_alloc(&view->env, bucket_bytes);
    bool held = p->places && p->whole && p->buckets;
    if (held) {
        sum_whole(p);
        choose_nodes(p);
        hfn_sink_bytes(sink, hfn_html_head, hfn_html_head_bytes);
        put_run(p);
        put_functions(p);
        put_histograms(p);
        put_allocs(p);
        put_budget(p);
        put_nodes(p);
        put_edges(p);
        hfn_sink_text(sink, "}");
        hfn_sink_bytes(sink, hfn_html_tail, hfn_html_tail_bytes);
    }
    hfn_free(&view->env, p->places, place_bytes);
    hfn_free(&view->env, p->whole, whole_bytes);
    hfn_free(&view->env, p->buckets, bucket_bytes);
    hfn_free(&view->env, p, sizeof *p);
    return held;
}

const hfn_exporter hfn_exporter_html = {
    .name = "html",
    .extension = ".html",
    .about = "one page for a browser: table, flame graph, call tree, threads",
    .needs = HOTFN_NEEDS_FLAT,
    .write = write_html,
};
