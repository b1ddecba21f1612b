/* SPDX-License-Identifier: MIT */
/* The table of a timed run: calls, total, self, share of the threads' busy time, p99, max; then the
 * slow calls, and what the hooks cost and lost.  "~" marks estimates, "-" what was counted only. */
#include "exporters/table.h"

#include "base/sort.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SLOW_SHOWN 10u
#define CALLERS_SHOWN 6u

/* Four digits and a unit: 12.34 ms. */
static const char *time_text(uint64_t ns, char out[24])
{
    static const struct {
        double ns;
        const char *unit;
    } units[] = { { 1e9, "s" }, { 1e6, "ms" }, { 1e3, "us" } };
    for (size_t i = 0; i < HFN_COUNT_OF(units); i++) {
        double value = (double)ns / units[i].ns;
        if (value >= 0.9995) {
            int decimals = value < 9.9995 ? 3 : value < 99.995 ? 2 : value < 999.95 ? 1 : 0;
            snprintf(out, 24, "%.*f %s", decimals, value, units[i].unit);
            return out;
        }
    }
    snprintf(out, 24, "%" PRIu64 " ns", ns);
    return out;
}

static bool is_sample(const hfn_view *view)
{
    return (view->time.flags & HOTFN_TIMING_SAMPLED) != 0;
}

void hfn_table_time_columns(const hfn_view *view, hfn_sink *sink, size_t module_width)
{
    hfn_sink_format(sink, "%s%5s  %16s  %10s%s  %10s  %6s  %9s  %9s", hfn_table_color(view, DIM),
                    "rank", "calls", "total", is_sample(view) ? "   error" : "", "self", "share",
                    "p99", "max");
    if (hfn_table_has_memory(view)) {
        hfn_table_memory_columns(sink);
    }
    hfn_sink_format(sink, "  %-*s  %s%s\n", (int)module_width, "module", "function",
                    hfn_table_color(view, PLAIN));
}

static void put_times(const hfn_view *view, hfn_sink *sink, const hotfn_record_timing *t)
{
    char text[24];
    const char *about = t->timing == HOTFN_TIMING_SAMPLE ? "~" : "";
    double share = view->time.busy_ns ? 100.0 * (double)t->self_ns / (double)view->time.busy_ns : 0;
    if (t->timed_calls == 0) {
        hfn_sink_format(sink, "  %10s%s  %10s  %6s  %9s  %9s", "-",
                        is_sample(view) ? "       -" : "", "-", "-", "-", "-");
        return;
    }
    hfn_sink_format(sink, "  %s%*s", about, (int)(10 - strlen(about)),
                    time_text(t->total_ns, text));
    if (is_sample(view)) {
        hfn_sink_format(sink, "  %5.1f%%",
                        t->total_ns ? 100.0 * (double)t->total_error_ns / (double)t->total_ns : 0);
    }
    hfn_sink_format(sink, "  %s%s%*s%s", hfn_table_color(view, BOLD), about,
                    (int)(10 - strlen(about)), time_text(t->self_ns, text),
                    hfn_table_color(view, PLAIN));
    hfn_sink_format(sink, "  %s%5.1f%%%s", hfn_table_color(view, share >= 5 ? HOT : ""), share,
                    hfn_table_color(view, share >= 5 ? PLAIN : ""));
    hfn_sink_format(sink, "  %9s", t->p99_ns ? time_text(t->p99_ns, text) : "-");
    bool slow = view->time.slow_ns && t->max_ns >= view->time.slow_ns;
    hfn_sink_format(sink, "  %s%9s%s", hfn_table_color(view, slow ? HOT : ""),
                    time_text(t->max_ns, text), hfn_table_color(view, slow ? PLAIN : ""));
}

void hfn_table_time_row(const hfn_view *view, hfn_sink *sink, uint32_t rank, size_t module_width)
{
    char calls[33];
    hotfn_record_function f;
    hotfn_record_timing t;
    hotfn_record_module m;
    size_t taken =
        5 + 18 + 12 + 12 + 8 + 11 + 11 + 2 + module_width + 2 + (is_sample(view) ? 8 : 0);
    hfn_view_function(view, view->order[rank], &f);
    hfn_view_timing(view, view->order[rank], &t);
    hfn_view_module(view, f.module, &m);
    hfn_sink_format(sink, "%5" PRIu32 "  %16s", rank + 1,
                    hfn_table_calls(view, view->order[rank], f.calls, calls));
    put_times(view, sink, &t);
    if (hfn_table_has_memory(view)) {
        hfn_table_memory(sink, &t);
        taken += 11 + 14 + 11 + 11;
    }
    hfn_sink_format(sink, "  %s", hfn_table_color(view, DIM));
    hfn_table_column(sink, m.file, module_width);
    hfn_sink_format(sink, "%s  ", hfn_table_color(view, PLAIN));
    hfn_table_function(view, sink, &f, &m,
                       view->options.width > taken + 8 ? view->options.width - taken : 0);
    if (t.timed_calls == 0 && t.reason[0]) {
        hfn_sink_text(sink, " (counted only: ");
        hfn_table_name(sink, t.reason, 0);
        hfn_sink_text(sink, ")");
    }
    if (t.open_calls == 1 && t.timed_calls == 1) {
        hfn_sink_text(sink, " (did not return)");
    } else if (t.open_calls > 0) {
        hfn_sink_format(sink, " (%s call%s did not return)", hfn_table_grouped(t.open_calls, calls),
                        hfn_table_s(t.open_calls));
    }
    hfn_sink_text(sink, f.flags & HOTFN_VERDICT_ENTRY_LOOP ? " (entry is a loop)\n" : "\n");
}

/* ---- Below the table. */

static void put_function(const hfn_view *view, hfn_sink *sink, uint32_t index)
{
    char shown[8192];
    hotfn_record_function f;
    if (index == HOTFN_NO_FUNCTION) {
        hfn_sink_text(sink, "(outside)");
        return;
    }
    hfn_view_function(view, index, &f);
    hfn_table_name(sink, hfn_view_display(view, &f, shown, sizeof shown), 0);
}

static void put_callers(const hfn_view *view, hfn_sink *sink, uint32_t node)
{
    hotfn_record_node n;
    uint32_t depth = 0;
    hfn_view_node(view, node, &n);
    for (uint32_t at = n.parent; at != HOTFN_NO_NODE; at = n.parent) {
        hfn_view_node(view, at, &n);
        hfn_sink_text(sink, " < ");
        if (depth++ == CALLERS_SHOWN) {
            hfn_sink_text(sink, "...");
            return;
        }
        put_function(view, sink, n.function);
    }
}

/* The slowest first: one pass for each that is shown. */
static void put_slow_calls(const hfn_view *view, hfn_sink *sink)
{
    char took[24], when[24], thread[64];
    uint64_t below = UINT64_MAX;
    uint32_t shown = 0, below_index = 0;
    if (view->time.slow_count == 0) {
        return;
    }
    uint64_t slow = view->time.slow_count + view->time.slow_lost;
    hfn_sink_format(sink, "\n%" PRIu64 " call%s took %s or longer; the slowest:\n", slow,
                    hfn_table_s(slow), time_text(view->time.slow_ns, took));
    for (; shown < SLOW_SHOWN && shown < view->time.slow_count; shown++) {
        hotfn_record_slow_call best = HOTFN_RECORD_SLOW_CALL_INIT, s = best;
        uint32_t best_index = UINT32_MAX;
        for (uint32_t i = 0; i < view->time.slow_count; i++) {
            hotfn_record_get_slow_call(view->record, i, &s);
            bool left = s.duration_ns < below || (s.duration_ns == below && i > below_index);
            if (left && (best_index == UINT32_MAX || s.duration_ns > best.duration_ns)) {
                best = s;
                best_index = i;
            }
        }
        below = best.duration_ns;
        below_index = best_index;
        hfn_sink_format(sink, "  %s%10s%s  at %10s  %-24s  ", hfn_table_color(view, HOT),
                        time_text(best.duration_ns, took), hfn_table_color(view, PLAIN),
                        time_text(best.start_ns, when),
                        hfn_view_thread_name(view, best.thread, thread, sizeof thread));
        put_function(view, sink, best.function);
        if (best.node != HOTFN_NO_NODE) {
            put_callers(view, sink, best.node);
        }
        hfn_sink_text(sink, "\n");
    }
}

static bool is_costlier(const void *a, const void *b)
{
    const hotfn_record_edge *x = a, *y = b;
    return x->total_ns != y->total_ns ? x->total_ns > y->total_ns : x->calls > y->calls;
}

/* With a glob: who calls those functions, and whom they call. */
static bool is_wanted(const hfn_view *view, const hotfn_record_edge *edge)
{
    const uint32_t ends[] = { edge->caller, edge->callee };
    for (size_t i = 0; view->options.match && i < HFN_COUNT_OF(ends); i++) {
        hotfn_record_function f = HOTFN_RECORD_FUNCTION_INIT;
        if (ends[i] < view->info.function_count) {
            hfn_view_function(view, ends[i], &f);
            if (hfn_view_matches(view, &f)) {
                return true;
            }
        }
    }
    return !view->options.match;
}

static void put_edges(const hfn_view *view, hfn_sink *sink, const hotfn_record_edge *edges,
                      uint32_t count)
{
    uint32_t most = view->options.limit ? view->options.limit : UINT32_MAX;
    char calls[32], took[24];
    hfn_sink_text(sink, "\n           calls       total  caller -> callee\n");
    for (uint32_t i = 0; i < count && i < most; i++) {
        hfn_sink_format(sink, "%16s  %10s  ", hfn_table_grouped(edges[i].calls, calls),
                        time_text(edges[i].total_ns, took));
        put_function(view, sink, edges[i].caller);
        hfn_sink_text(sink, " -> ");
        put_function(view, sink, edges[i].callee);
        hfn_sink_text(sink, "\n");
    }
    if (count > most) {
        hfn_sink_format(sink, "  ... and %" PRIu32 " more (-n 0 shows all)\n", count - most);
    }
}

/* The costliest first; false: no memory. */
static bool put_sorted_edges(const hfn_view *view, hfn_sink *sink)
{
    size_t bytes = (view->time.edge_count + 1u) * sizeof(hotfn_record_edge);
    hotfn_record_edge *edges = hfn_alloc(&view->env, bytes), *room = hfn_alloc(&view->env, bytes);
    bool held = edges && room;
    uint32_t count = 0;
    for (uint32_t i = 0; held && i < view->time.edge_count; i++) {
        hfn_view_edge(view, i, &edges[count]);
        count += is_wanted(view, &edges[count]);
    }
    if (held) {
        put_edges(view, sink, hfn_sort(edges, room, count, sizeof *edges, is_costlier), count);
    }
    hfn_free(&view->env, edges, bytes);
    hfn_free(&view->env, room, bytes);
    return held;
}

typedef struct loss {
    uint64_t count;
    const char *of_one, *of_more;
} loss;

/* What was merged, overwritten or odd: only where it happened. */
static void put_losses(const hfn_view *view, hfn_sink *sink)
{
    const hotfn_record_time_info *t = &view->time;
    const loss losses[] = {
        { t->nodes_merged, "entry found no place of its own in the call tree and was merged",
          "entries found no place of their own in the call tree and were merged" },
        { t->histograms_lost, "function has no percentiles: the histograms were used up",
          "functions have no percentiles: the histograms were used up" },
        { t->slow_lost, "slow call was overwritten by a later one",
          "slow calls were overwritten by later ones" },
        { t->events_lost, "entry or exit was overwritten by a later one",
          "entries and exits were overwritten by later ones" },
        { t->abandoned_exits, "call was left by longjmp, an exception or a thread's end",
          "calls were left by longjmp, an exception or a thread's end" },
        { t->clock_went_back, "exit had a clock before its entry's",
          "exits had a clock before their entry's" },
    };
    char count[32];
    for (size_t i = 0; i < HFN_COUNT_OF(losses); i++) {
        if (losses[i].count > 0) {
            hfn_sink_format(sink, "  %s %s\n", hfn_table_grouped(losses[i].count, count),
                            losses[i].count == 1 ? losses[i].of_one : losses[i].of_more);
        }
    }
}

/* Hot functions may be among them, and no time tells. */
static void put_counted_only(const hfn_view *view, hfn_sink *sink)
{
    uint64_t functions = 0, calls = 0;
    char grouped[32];
    for (uint32_t i = 0; i < view->info.function_count; i++) {
        hotfn_record_function f = HOTFN_RECORD_FUNCTION_INIT;
        hotfn_record_timing t;
        hfn_view_function(view, i, &f);
        hfn_view_timing(view, i, &t);
        if (f.counted && f.calls > 0 && t.timing == HOTFN_TIMING_COUNT_ONLY) {
            functions++;
            calls += f.calls;
        }
    }
    if (functions > 0) {
        hfn_sink_format(sink,
                        "counted only: %" PRIu64
                        " of the functions called, with %s call%s (%.1f %%), whose "
                        "time is their callers'; --json has the reasons\n",
                        functions, hfn_table_grouped(calls, grouped), hfn_table_s(calls),
                        100.0 * (double)calls / (double)view->total_calls);
    }
}

bool hfn_table_time_notes(const hfn_view *view, hfn_sink *sink)
{
    const hotfn_record_time_info *t = &view->time;
    char busy[24];
    hfn_sink_format(sink, "\ntimed: %s in hooked functions", time_text(t->busy_ns, busy));
    if (t->cost_inside_ns + t->cost_outside_ns > 0) {
        hfn_sink_format(sink,
                        "; a hook's own cost is %.1f ns a timed call (%.1f of it seen as the "
                        "callee's), %.1f ns a counted one\n",
                        t->cost_inside_ns + t->cost_outside_ns, t->cost_inside_ns,
                        t->count_cost_ns);
    } else {
        hfn_sink_text(sink, "; there is no cost of hooks in it\n");
    }
    if (t->clock == HOTFN_CLOCK_MERGED)
        hfn_sink_text(sink, "clock: nanoseconds of the merged runs' clocks\n");
    else
        hfn_sink_format(sink, "clock: %s, %.6g MHz, its steps are %.3g ns\n",
                        hfn_clock_name(t->clock), (double)t->ticks_per_second / 1e6,
                        t->resolution_ns);
    if (is_sample(view)) {
        if (t->sample_mean > 1)
            hfn_sink_format(sink,
                            "sampled: after each function's first 1000 calls one in %" PRIu32
                            " was timed, more of long calls, fewer of short ones; ",
                            t->sample_mean);
        else /* for a budget alone */
            hfn_sink_text(sink,
                          "sampled: every call was timed, but where the budget allowed fewer; ");
        hfn_sink_text(
            sink, "~ marks estimates, error is one standard error, min and max are those of the "
                  "timed calls\n");
    }
    put_counted_only(view, sink);
    hfn_table_memory_notes(view, sink);
    put_losses(view, sink);
    put_slow_calls(view, sink);
    return !(view->options.flags & HOTFN_EXPORT_EDGES) || put_sorted_edges(view, sink);
}
