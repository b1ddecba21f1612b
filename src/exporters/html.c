/* SPDX-License-Identifier: MIT */
/* The page of a record: the scripts in html/ show the JSON written here.  Every "<" in a string is
 * written as \u003c, so that no name can end a script element.  The first part is all that the page
 * needs to show its table; the others are read when they are needed. */
#include "exporters/budget.h"
#include "exporters/html/page.h"
#include "exporters/html_data.h"
#include "exporters/html_pack.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define FIRST_FUNCTIONS 500u /* in the first part */

static void write_number(hfn_page *p, const char *key, uint64_t value)
{
    hotfn_json_write(p->out, key, hotfn_json_create_number(value));
}

/* ---- The run. */

static hotfn_json *create_module(hfn_page *p, uint32_t i)
{
    hotfn_record_module m;
    hfn_view_module(p->view, i, &m);
    return hotfn_json_create_text(m.file);
}

static hotfn_json *create_thread(hfn_page *p, uint32_t i)
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

static hotfn_json *create_slow_call(hfn_page *p, uint32_t i)
{
    hotfn_record_slow_call s = HOTFN_RECORD_SLOW_CALL_INIT;
    hotfn_json *list = hotfn_json_create_array();
    hotfn_record_get_slow_call(p->view->record, i, &s);
    uint32_t node = s.node == HOTFN_NO_NODE ? UINT32_MAX : p->indices[s.node];
    hotfn_json_add(list, NULL, hfn_page_create_rank(p, s.function));
    hfn_add_number(list, NULL, s.thread);
    hfn_add_number(list, NULL, s.start_ns);
    hfn_add_number(list, NULL, s.duration_ns);
    hotfn_json_add(list, NULL, hfn_page_create_index(node, UINT32_MAX));
    return list;
}

/* The functions whose counts are lower bounds, and what was done to keep the budget. */
static void write_budget(hfn_page *p)
{
    hotfn_json_begin_array(p->out, "at_least");
    for (uint32_t i = 0; i < p->view->info.function_count; i++) {
        if (hfn_view_is_lower_bound(p->view, i)) {
            hotfn_json_write(p->out, NULL, hfn_page_create_rank(p, i));
        }
    }
    hotfn_json_end(p->out);
    hfn_budget_write(p->view, p->out, true);
}

static void write_sentence(hfn_page *p, const char *sentence)
{
    if (sentence[0]) {
        hotfn_json_write(p->out, NULL, hotfn_json_create_text(sentence));
    }
}

/* Write a note that begins with count; nothing if count is 0. */
static void write_counted(hfn_page *p, uint64_t count, const char *text)
{
    char sentence[200];
    if (count > 0) {
        snprintf(sentence, sizeof sentence, "%" PRIu64 " %s", count, text);
        write_sentence(p, sentence);
    }
}

static void write_time_note(hfn_page *p)
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

static void write_preparation(hfn_page *p)
{
    char text[80];

    if (p->view->info.preparation_ns >= HFN_LONG_PREPARATION_NS) {
        snprintf(text, sizeof text, "the program waited %.3f s for its scan and its hooks",
                 (double)p->view->info.preparation_ns / 1e9);
        write_sentence(p, text);
    }
}

static void write_notes(hfn_page *p)
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

static void write_run(hfn_page *p)
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
    write_number(p, "waited_ns", p->view->time.waited_ns);
    write_number(p, "slow_ns", p->view->time.slow_ns);
    write_number(p, "ticks", p->view->time.ticker != HOTFN_TICKER_NONE);
    write_number(p, "ticks_per_second", p->view->time.ticks_per_second);
    write_notes(p);
    hfn_page_write_column(p, "modules", 0, info->module_count, create_module);
    hfn_page_write_column(p, "threads", 0, info->thread_count, create_thread);
    hfn_page_write_column(p, "slow", 0, p->view->time.slow_count, create_slow_call);
    write_number(p, "function_count", info->function_count);
    write_number(p, "called_count", p->called_count);
    write_number(p, "event_count", p->view->time.event_count);
    write_number(p, "events_lost", p->view->time.events_lost);
    write_number(p, "node_count", p->view->time.node_count - p->omitted);
}

/* ---- The parts of the page. */

static uint32_t count_first(const hfn_page *p)
{
    uint32_t count = p->view->info.function_count;
    return count < FIRST_FUNCTIONS ? count : FIRST_FUNCTIONS;
}

static void write_first(hfn_page *p)
{
    write_run(p);
    hfn_page_write_functions(p, 0, count_first(p));
    write_budget(p);
}

static void write_rest(hfn_page *p)
{
    hfn_page_write_functions(p, count_first(p), p->view->info.function_count);
}

static void write_links(hfn_page *p)
{
    hfn_page_write_edges(p);
    hfn_page_write_histograms(p);
}

/* Write a script element with the object whose members write_members writes. */
static bool write_part(hfn_page *p, const char *id, void (*write_members)(hfn_page *p))
{
    hfn_page_part part = { .env = &p->view->env };
    hotfn_json_writer_create(&p->out, HOTFN_JSON_PAGE, hfn_page_part_append, &part);
    bool ok = p->out != NULL;
    if (ok) {
        hotfn_json_begin_object(p->out, NULL);
        write_members(p);
        hotfn_json_end(p->out);
        ok = hotfn_json_writer_destroy(p->out) == HOTFN_OK;
    }
    p->out = NULL;
    if (ok) {
        hfn_sink_format(p->sink, "<script type=\"application/json\" id=\"%s\">", id);
        ok = hfn_page_part_write(&part, p->sink);
        hfn_sink_text(p->sink, "</script>\n");
    }
    hfn_page_part_finish(&part);
    return ok;
}

static bool write_parts(hfn_page *p)
{
    hfn_page_choose_nodes(p);
    hfn_sink_bytes(p->sink, hfn_html_head, hfn_html_head_bytes);
    bool ok = hfn_page_sort(p) && write_part(p, "data", write_first);
    hfn_sink_bytes(p->sink, hfn_html_script, hfn_html_script_bytes);
    ok = ok && write_part(p, "rest", write_rest) && write_part(p, "links", write_links) &&
         write_part(p, "nodes", hfn_page_write_nodes) &&
         write_part(p, "events", hfn_page_write_events);
    hfn_sink_bytes(p->sink, hfn_html_tail, hfn_html_tail_bytes);
    return ok;
}

static bool write_html(const hfn_view *view, hfn_sink *sink)
{
    size_t order_bytes = view->info.function_count * sizeof(uint32_t);
    size_t index_bytes = view->time.node_count * sizeof(uint32_t);
    size_t sum_bytes = view->time.node_count * sizeof(hfn_page_sum);
    size_t bucket_bytes = HOTFN_HISTOGRAM_BUCKETS * sizeof(uint64_t);
    hfn_page *p = hfn_allocate_zeroed(&view->env, sizeof *p);
    if (!p) {
        return false;
    }
    p->view = view;
    p->sink = sink;
    p->order = hfn_allocate_zeroed(&view->env, order_bytes);
    p->ranks = hfn_allocate_zeroed(&view->env, order_bytes);
    p->indices = hfn_allocate_zeroed(&view->env, index_bytes);
    p->sums = hfn_allocate_zeroed(&view->env, sum_bytes);
    p->buckets = hfn_allocate_zeroed(&view->env, bucket_bytes);
    bool ok = p->order && p->ranks && p->indices && p->sums && p->buckets && write_parts(p);
    hfn_free_memory(&view->env, p->order, order_bytes);
    hfn_free_memory(&view->env, p->ranks, order_bytes);
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
