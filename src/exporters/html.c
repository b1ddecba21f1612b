/* SPDX-License-Identifier: MIT */
/* The page of a record: html/page.js shows the JSON written here.  The data is in columns, because
 * a record may have tens of thousands of functions; a function is its index in the record.  Every
 * "<" in a string is written as \u003c, so that no name can end the script element. */
#include "exporters/budget.h"
#include "exporters/html/page.h"
#include "exporters/json_fields.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* In a larger tree, nodes with less than 1/MIN_SHARE of the time and of the bytes are omitted. */
#define MAX_NODES 200000u
#define MIN_SHARE 50000u

/* Time and bytes of a node together with all nodes below it. */
typedef struct node_sum {
    uint64_t ns, bytes;
} node_sum;

typedef struct page {
    const hfn_view *view;
    hfn_sink *sink;
    hotfn_json_writer *out;
    uint32_t *indices; /* by node: its index in the page, UINT32_MAX if it is omitted */
    node_sum *sums, all;
    uint32_t omitted;
    uint64_t *buckets;
    char shown[8192];
} page;

/* ---- Columns. */

typedef hotfn_json *(*create_fn)(page *p, uint32_t index);

static void write_column(page *p, const char *key, uint32_t count, create_fn create)
{
    hotfn_json_begin_array(p->out, key);
    for (uint32_t i = 0; i < count && !p->sink->failed; i++) {
        hfn_view_reach(p->view, i, count);
        hotfn_json_write(p->out, NULL, create(p, i));
    }
    hotfn_json_end(p->out);
}

static void write_number(page *p, const char *key, uint64_t value)
{
    hotfn_json_write(p->out, key, hotfn_json_create_number(value));
}

static hotfn_json *create_optional(bool present, uint64_t value)
{
    return present ? hotfn_json_create_number(value) : hotfn_json_create_text(NULL);
}

/* The page uses -1 for "none". */
static hotfn_json *create_index(uint32_t index, uint32_t none)
{
    return hotfn_json_create_signed(index == none ? -1 : (int64_t)index);
}

/* ---- Functions. */

static hotfn_json *create_name(page *p, uint32_t i)
{
    hotfn_record_function f;
    hfn_view_function(p->view, i, &f);
    return hotfn_json_create_text(hfn_view_display(p->view, &f, p->shown, sizeof p->shown));
}

static hotfn_json *create_function_module(page *p, uint32_t i)
{
    hotfn_record_function f;
    hfn_view_function(p->view, i, &f);
    return hotfn_json_create_number(f.module);
}

static hotfn_json *create_rva(page *p, uint32_t i)
{
    hotfn_record_function f;
    hfn_view_function(p->view, i, &f);
    return hotfn_json_create_number(f.rva);
}

static hotfn_json *create_calls(page *p, uint32_t i)
{
    hotfn_record_function f;
    hfn_view_function(p->view, i, &f);
    return create_optional(f.counted, f.calls);
}

/* The reason why a function was not counted, not timed, or counted in part; "" if there is none. */
static hotfn_json *create_reason(page *p, uint32_t i)
{
    hotfn_record_function f;
    hotfn_record_timing t;
    const char *reason = "";
    hfn_view_function(p->view, i, &f);
    hfn_view_timing(p->view, i, &t);
    if (!f.counted) {
        reason = f.reason[0] ? f.reason : hfn_state_name(f.state);
    } else if (hfn_view_at_least(p->view, i)) {
        reason = "unhooked for a while to keep the budget: the count is a lower bound";
    } else if (p->view->time.flags && t.timing == HOTFN_TIMING_COUNT_ONLY) {
        reason = t.reason_text[0] ? t.reason_text : t.reason;
    }
    return hotfn_json_create_text(reason);
}

#define TIME_COLUMN(name, field)                                                                   \
    static hotfn_json *create_##name(page *p, uint32_t i)                                          \
    {                                                                                              \
        hotfn_record_timing t;                                                                     \
        hfn_view_timing(p->view, i, &t);                                                           \
        return create_optional(t.timed_calls > 0, t.field);                                        \
    }
TIME_COLUMN(total, total_ns)
TIME_COLUMN(self, self_ns)
TIME_COLUMN(max, max_ns)
TIME_COLUMN(total_error, total_error_ns)
TIME_COLUMN(self_error, self_error_ns)
TIME_COLUMN(p50, p50_ns)
TIME_COLUMN(p90, p90_ns)
TIME_COLUMN(p99, p99_ns)
TIME_COLUMN(open, open_calls)

static hotfn_json *create_timing(page *p, uint32_t i)
{
    hotfn_record_timing t;
    hfn_view_timing(p->view, i, &t);
    return hotfn_json_create_number(t.timing);
}

static void write_functions(page *p)
{
    static const struct {
        const char *key;
        create_fn create;
    } columns[] = {
        { "name", create_name },
        { "module", create_function_module },
        { "rva", create_rva },
        { "calls", create_calls },
        { "why", create_reason },
        { "timing", create_timing },
        { "total", create_total },
        { "self", create_self },
        { "total_error", create_total_error },
        { "self_error", create_self_error },
        { "max", create_max },
        { "p50", create_p50 },
        { "p90", create_p90 },
        { "p99", create_p99 },
        { "open", create_open },
    };
    size_t count = p->view->time.flags ? HFN_COUNT_OF(columns) : 6;
    hotfn_json_begin_object(p->out, "functions");
    for (size_t i = 0; i < count; i++) {
        write_column(p, columns[i].key, p->view->info.function_count, columns[i].create);
    }
    hotfn_json_end(p->out);
}

/* Write for each timed function the list bucket, count, bucket, count ... without empty buckets. */
static void write_histograms(page *p)
{
    hotfn_json_begin_object(p->out, "histograms");
    for (uint32_t i = 0; p->view->time.flags && i < p->view->info.function_count; i++) {
        hotfn_record_timing t;
        char key[16];
        hfn_view_timing(p->view, i, &t);
        if (t.timed_calls == 0) {
            continue;
        }
        hotfn_record_get_histogram(p->view->record, i, p->buckets);
        hotfn_json *list = hotfn_json_create_array();
        for (uint32_t k = 0; k < HOTFN_HISTOGRAM_BUCKETS; k++) {
            if (p->buckets[k] > 0) {
                hfn_add_number(list, NULL, k);
                hfn_add_number(list, NULL, p->buckets[k]);
            }
        }
        snprintf(key, sizeof key, "%" PRIu32, i);
        hotfn_json_write(p->out, key, list);
    }
    hotfn_json_end(p->out);
}

static hotfn_json *create_alloc(page *p, uint32_t i)
{
    hotfn_json *list = hotfn_json_create_array();
    hotfn_record_timing t;
    hfn_view_timing(p->view, i, &t);
    hfn_add_number(list, NULL, t.total_alloc.allocated_bytes);
    hfn_add_number(list, NULL, t.total_alloc.allocated_blocks);
    hfn_add_number(list, NULL, t.total_alloc.freed_bytes);
    hfn_add_number(list, NULL, t.total_alloc.freed_blocks);
    hfn_add_number(list, NULL, t.self_alloc.allocated_bytes);
    hfn_add_number(list, NULL, t.self_alloc.allocated_blocks);
    return list;
}

/* ---- Tree and edges. */

/* The total of a call that was still open at the end (main, when exit() was called) is not known;
 * the self time and the totals of its callees are its lower bound. */
static void sum_nodes(page *p)
{
    hotfn_record_node n;
    for (uint32_t i = p->view->time.node_count; i-- > 0;) {
        hfn_view_node(p->view, i, &n);
        node_sum *sum = &p->sums[i];
        sum->ns = n.total_ns > sum->ns + n.self_ns ? n.total_ns : sum->ns + n.self_ns;
        sum->bytes += n.self_alloc.allocated_bytes;
        p->all.ns += n.parent == HOTFN_NO_NODE ? sum->ns : 0;
        p->all.bytes += n.self_alloc.allocated_bytes;
        if (n.parent != HOTFN_NO_NODE) {
            p->sums[n.parent].ns += sum->ns;
            p->sums[n.parent].bytes += sum->bytes;
        }
    }
}

static void choose_nodes(page *p)
{
    bool all = p->view->time.node_count <= MAX_NODES;
    uint32_t index = 0;
    hotfn_record_node n;
    for (uint32_t i = 0; i < p->view->time.node_count; i++) {
        hfn_view_node(p->view, i, &n);
        bool kept = (all || p->sums[i].ns > p->all.ns / MIN_SHARE ||
                     p->sums[i].bytes > p->all.bytes / MIN_SHARE) &&
                    n.function != HOTFN_NO_FUNCTION &&
                    (n.parent == HOTFN_NO_NODE || p->indices[n.parent] != UINT32_MAX);
        p->indices[i] = kept ? index++ : UINT32_MAX;
        p->omitted += !kept;
    }
}

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

static hotfn_json *create_node_field(page *p, const hotfn_record_node *n, uint32_t i, int field)
{
    switch (field) {
    case NODE_PARENT:
        return create_index(n->parent == HOTFN_NO_NODE ? UINT32_MAX : p->indices[n->parent],
                            UINT32_MAX);
    case NODE_FUNCTION: return hotfn_json_create_number(n->function);
    case NODE_THREAD: return hotfn_json_create_number(n->thread);
    case NODE_CALLS: return hotfn_json_create_number(n->calls);
    case NODE_TOTAL: return hotfn_json_create_number(p->sums[i].ns);
    case NODE_BYTES: return hotfn_json_create_number(n->self_alloc.allocated_bytes);
    case NODE_BELOW: return hotfn_json_create_number(p->sums[i].bytes);
    default: return hotfn_json_create_number(n->self_ns);
    }
}

/* The nodes that choose_nodes kept, a column for each field. */
static void write_nodes(page *p)
{
    static const char *const keys[] = { "parent", "function", "thread", "calls",
                                        "total",  "self",     "bytes",  "below" };
    int fields = p->view->time.flags & HOTFN_TIMING_ALLOC ? NODE_BELOW + 1 : NODE_BYTES;
    hotfn_record_node n;
    hotfn_json_begin_object(p->out, "nodes");
    for (int field = 0; field < fields; field++) {
        hotfn_json_begin_array(p->out, keys[field]);
        for (uint32_t i = 0; i < p->view->time.node_count && !p->sink->failed; i++) {
            hfn_view_reach(p->view, i, p->view->time.node_count);
            if (p->indices[i] != UINT32_MAX) {
                hfn_view_node(p->view, i, &n);
                hotfn_json_write(p->out, NULL, create_node_field(p, &n, i, field));
            }
        }
        hotfn_json_end(p->out);
    }
    hotfn_json_end(p->out);
}

#define EDGE_COLUMN(name, expression)                                                              \
    static hotfn_json *create_edge_##name(page *p, uint32_t i)                                     \
    {                                                                                              \
        hotfn_record_edge e;                                                                       \
        hfn_view_edge(p->view, i, &e);                                                             \
        return expression;                                                                         \
    }
EDGE_COLUMN(caller, create_index(e.caller, HOTFN_NO_FUNCTION))
EDGE_COLUMN(callee, create_index(e.callee, HOTFN_NO_FUNCTION))
EDGE_COLUMN(calls, hotfn_json_create_number(e.calls))
EDGE_COLUMN(total, hotfn_json_create_number(e.total_ns))

static void write_edges(page *p)
{
    uint32_t count = p->view->time.edge_count;
    hotfn_json_begin_object(p->out, "edges");
    write_column(p, "caller", count, create_edge_caller);
    write_column(p, "callee", count, create_edge_callee);
    write_column(p, "calls", count, create_edge_calls);
    write_column(p, "total", count, create_edge_total);
    hotfn_json_end(p->out);
}

/* ---- The run. */

static hotfn_json *create_module(page *p, uint32_t i)
{
    hotfn_record_module m;
    hfn_view_module(p->view, i, &m);
    return hotfn_json_create_text(m.file);
}

static hotfn_json *create_thread(page *p, uint32_t i)
{
    hotfn_json *o = hotfn_json_create_object();
    hotfn_record_thread t;
    char name[sizeof t.name + 1] = "";
    hfn_view_thread(p->view, i, &t);
    memcpy(name, t.name, sizeof t.name);
    hfn_add_text(o, "name", name);
    hfn_add_number(o, "tid", t.tid);
    hfn_add_number(o, "pid", t.pid);
    hfn_add_number(o, "calls", t.calls);
    hfn_add_number(o, "busy_ns", t.busy_ns);
    return o;
}

static hotfn_json *create_slow_call(page *p, uint32_t i)
{
    hotfn_record_slow_call s = HOTFN_RECORD_SLOW_CALL_INIT;
    hotfn_json *list = hotfn_json_create_array();
    hotfn_record_get_slow_call(p->view->record, i, &s);
    uint32_t node = s.node == HOTFN_NO_NODE ? UINT32_MAX : p->indices[s.node];
    hotfn_json_add(list, NULL, create_index(s.function, HOTFN_NO_FUNCTION));
    hfn_add_number(list, NULL, s.thread);
    hfn_add_number(list, NULL, s.start_ns);
    hfn_add_number(list, NULL, s.duration_ns);
    hotfn_json_add(list, NULL, create_index(node, UINT32_MAX));
    return list;
}

/* The functions whose counts are lower bounds, and what was done to keep the budget. */
static void write_budget(page *p)
{
    hotfn_json_begin_array(p->out, "at_least");
    for (uint32_t i = 0; i < p->view->info.function_count; i++) {
        if (hfn_view_at_least(p->view, i)) {
            hotfn_json_write(p->out, NULL, hotfn_json_create_number(i));
        }
    }
    hotfn_json_end(p->out);
    hfn_budget_write(p->view, p->out, true);
}

static void write_sentence(page *p, const char *sentence)
{
    if (sentence[0]) {
        hotfn_json_write(p->out, NULL, hotfn_json_create_text(sentence));
    }
}

/* Write a note that begins with count; nothing if count is 0. */
static void write_counted(page *p, uint64_t count, const char *text)
{
    char sentence[200];
    if (count > 0) {
        snprintf(sentence, sizeof sentence, "%" PRIu64 " %s", count, text);
        write_sentence(p, sentence);
    }
}

static void write_time_note(page *p)
{
    const hotfn_record_time_info *t = &p->view->time;
    char sentence[200];
    if (t->note[0]) {
        write_sentence(p, t->note);
    } else if (t->clock == HOTFN_CLOCK_MERGED) {
        write_sentence(p, "times of merged runs, without the cost of the hooks");
    } else if (t->flags) {
        snprintf(sentence, sizeof sentence,
                 "a hook costs %.1f ns in a timed call and %.1f ns in a counted one; times are "
                 "without it",
                 t->cost_inside_ns + t->cost_outside_ns, t->count_cost_ns);
        write_sentence(p, sentence);
    }
    if (t->flags & HOTFN_TIMING_SAMPLED && t->sample_mean > 0) {
        snprintf(sentence, sizeof sentence,
                 "sampled: one call in %" PRIu32 " was timed; ~ marks estimates", t->sample_mean);
        write_sentence(p, sentence);
    }
}

static void write_preparation(page *p)
{
    char text[80];

    if (p->view->info.preparation_ns >= HFN_LONG_PREPARATION_NS) {
        snprintf(text, sizeof text, "the program waited %.3f s for its scan and its hooks",
                 (double)p->view->info.preparation_ns / 1e9);
        write_sentence(p, text);
    }
}

static void write_notes(page *p)
{
    const hotfn_record_time_info *t = &p->view->time;
    const char *lost = p->view->info.repaired;
    char room[600];
    hotfn_json_begin_array(p->out, "notes");
    if (lost[0]) {
        snprintf(room, sizeof room, "this record was repaired, and lost: %.500s", lost);
        write_sentence(p, room);
    }
    write_time_note(p);
    write_sentence(p, hfn_view_cost_note(p->view, room));
    if (hfn_view_coverage(p->view) >= 0) {
        snprintf(room, sizeof room, "known functions contain %.1f %% of the code",
                 hfn_view_coverage(p->view));
        write_sentence(p, room);
    }
    write_counted(p, p->view->info.threads_lost, "threads' calls were lost");
    write_counted(p, p->view->info.overwritten_count,
                  "functions are not counted, because other code overwrote their hooks");
    if (p->view->info.state != HOTFN_RECORD_LIVE) {
        write_counted(p, p->view->info.unverified_count,
                      "processes ended without a check of their hooks");
    }
    write_preparation(p);
    write_counted(p, t->nodes_merged, "calls have no node of their own in the tree");
    write_counted(p, p->omitted, "nodes of the tree with hardly any time are omitted");
    write_counted(p, t->histograms_lost, "functions have no percentiles");
    write_counted(p, t->slow_lost, "slow calls were overwritten by later ones");
    write_counted(p, t->abandoned_exits, "calls were left by longjmp or an exception");
    write_counted(p, t->clock_went_back, "calls ended at earlier clock values than they began");
    hotfn_json_end(p->out);
}

static void write_run(page *p)
{
    const hotfn_record_info *info = &p->view->info;
    const char *command = info->command[0] ? info->command : "(unknown command)";
    uint64_t begin = info->window_end_ns ? info->window_start_ns : info->start_ns;
    uint64_t end = info->window_end_ns ? info->window_end_ns : info->end_ns;
    hotfn_json_write(p->out, "command", hotfn_json_create_text(command));
    hotfn_json_write(p->out, "state",
                     hotfn_json_create_text(hotfn_record_get_state_name(info->state)));
    hotfn_json_write(p->out, "timed", hotfn_json_create_bool(p->view->time.flags != 0));
    write_number(p, "calls", p->view->total_calls);
    uint64_t own = info->window_end_ns ? 0 : info->preparation_ns;
    write_number(p, "wall_ns", end > begin + own ? end - begin - own : 0);
    write_number(p, "busy_ns", p->view->time.busy_ns);
    write_number(p, "slow_ns", p->view->time.slow_ns);
    write_number(p, "ticks_per_second", p->view->time.ticks_per_second);
    write_notes(p);
    write_column(p, "modules", info->module_count, create_module);
    write_column(p, "threads", info->thread_count, create_thread);
    write_column(p, "slow", p->view->time.slow_count, create_slow_call);
}

static void write_data(page *p)
{
    hotfn_json_begin_object(p->out, NULL);
    write_run(p);
    write_functions(p);
    write_histograms(p);
    if (p->view->time.flags & HOTFN_TIMING_ALLOC) {
        write_column(p, "allocs", p->view->info.function_count, create_alloc);
    }
    write_budget(p);
    write_nodes(p);
    write_edges(p);
    hotfn_json_end(p->out);
}

static bool write_html(const hfn_view *view, hfn_sink *sink)
{
    size_t index_bytes = view->time.node_count * sizeof(uint32_t);
    size_t sum_bytes = view->time.node_count * sizeof(node_sum);
    size_t bucket_bytes = HOTFN_HISTOGRAM_BUCKETS * sizeof(uint64_t);
    page *p = hfn_allocate_zeroed(&view->env, sizeof *p);
    if (!p) {
        return false;
    }
    p->view = view;
    p->sink = sink;
    p->indices = hfn_allocate_zeroed(&view->env, index_bytes);
    p->sums = hfn_allocate_zeroed(&view->env, sum_bytes);
    p->buckets = hfn_allocate_zeroed(&view->env, bucket_bytes);
    p->out = hfn_json_open(sink, HOTFN_JSON_PAGE);
    bool ok = p->indices && p->sums && p->buckets && p->out;
    if (ok) {
        sum_nodes(p);
        choose_nodes(p);
        hfn_sink_bytes(sink, hfn_html_head, hfn_html_head_bytes);
        write_data(p);
        hfn_sink_bytes(sink, hfn_html_tail, hfn_html_tail_bytes);
    }
    if (p->out) {
        ok = hfn_json_close(p->out) && ok;
    }
    hfn_free_memory(&view->env, p->indices, index_bytes);
    hfn_free_memory(&view->env, p->sums, sum_bytes);
    hfn_free_memory(&view->env, p->buckets, bucket_bytes);
    hfn_free_memory(&view->env, p, sizeof *p);
    return ok;
}

const hfn_exporter hfn_exporter_html = {
    .name = "html",
    .extension = ".html",
    .about = "one page for a browser: table, flame graph, call tree, threads",
    .needs = HOTFN_NEEDS_FLAT,
    .write = write_html,
};
