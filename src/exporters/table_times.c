/* SPDX-License-Identifier: MIT */
/* The table of a timed run: calls, total, self, share of the threads' busy time, p99, max; then the
 * slow calls, the cost of the hooks and the losses.  "~" marks an estimate, "-" a time of a
 * function that was only counted. */
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

/* The standard error of a time by ticks, as a share of it. */
static double get_relative_error(double tick_error_ns, double ns)
{
    double x = tick_error_ns / ns, root = x > 1 ? x : 1;
    for (int i = 0; i < 32; i++) {
        root = (root + x / root) / 2;
    }
    return root;
}

static bool is_sample(const hfn_view *view)
{
    return (view->time.flags & HOTFN_TIMING_SAMPLED) != 0;
}

static void put_time(const hfn_view *view, hfn_sink *sink, const hfn_table_layout *l,
                     uint32_t column, const char *color, const char *mark, uint64_t ns)
{
    char time[24], text[32];
    snprintf(text, sizeof text, "%s%*s", mark, mark[0] ? (int)l->widths[column] - 1 : 0,
             time_text(ns, time));
    hfn_layout_put(view, sink, l, column, color, text);
}

/* Two digits and a unit: <4 us. */
static void put_bound(const hfn_view *view, hfn_sink *sink, const hfn_table_layout *l,
                      uint32_t column, uint64_t ns)
{
    const char *units[] = { "ns", "us", "ms", "s" };
    char text[32];
    double value = (double)ns;
    size_t unit = 0;
    for (; value >= 999.5 && unit + 1 < HFN_COUNT_OF(units); unit++) {
        value /= 1000;
    }
    snprintf(text, sizeof text, value < 99.5 ? "<%.2g %s" : "<%.0f %s", value, units[unit]);
    hfn_layout_put(view, sink, l, column, "", text);
}

/* A time and its error: "~" before the time if the error is large, "<" before the sum of both if
 * the error is as large as the time. */
static void put_estimate(const hfn_view *view, hfn_sink *sink, const hfn_table_layout *l,
                         uint32_t column, const char *color, bool about, uint64_t ns,
                         uint64_t error_ns)
{
    bool is_large = error_ns > ns / 10;
    bool is_unresolved = view->time.ticker != HOTFN_TICKER_NONE && !about && error_ns >= ns;
    if (is_unresolved && error_ns != 0 && error_ns != HOTFN_ERROR_UNKNOWN) {
        put_bound(view, sink, l, column, ns + error_ns);
    } else if (ns == 0 && error_ns == HOTFN_ERROR_UNKNOWN) {
        hfn_layout_put(view, sink, l, column, "", "-");
    } else if (ns > 0 || error_ns == 0 || error_ns == HOTFN_ERROR_UNKNOWN) {
        put_time(view, sink, l, column, color, about || is_large ? "~" : "", ns);
    } else {
        put_bound(view, sink, l, column, error_ns);
    }
}

void hfn_table_times(const hfn_view *view, hfn_sink *sink, const hfn_table_layout *l,
                     const hotfn_record_timing *t)
{
    char text[24];
    bool about = t->timing == HOTFN_TIMING_SAMPLE;
    bool slow = view->time.slow_ns && t->max_ns >= view->time.slow_ns;
    double share = view->time.busy_ns ? 100.0 * (double)t->self_ns / (double)view->time.busy_ns : 0;
    if (t->timed_calls == 0) {
        for (uint32_t i = HFN_COLUMN_TOTAL; i <= HFN_COLUMN_MAX; i++) {
            hfn_layout_put(view, sink, l, i, "", "-");
        }
        return;
    }
    put_estimate(view, sink, l, HFN_COLUMN_TOTAL, "", about, t->total_ns, t->total_error_ns);
    if (t->total_waited_ns > 0) {
        put_time(view, sink, l, HFN_COLUMN_WAITED, "", "", t->total_waited_ns);
    } else {
        hfn_layout_put(view, sink, l, HFN_COLUMN_WAITED, "", "-");
    }
    if (t->total_error_ns == HOTFN_ERROR_UNKNOWN) {
        snprintf(text, sizeof text, "?");
    } else {
        snprintf(text, sizeof text, "%.1f%%",
                 t->total_ns ? 100.0 * (double)t->total_error_ns / (double)t->total_ns : 0);
    }
    hfn_layout_put(view, sink, l, HFN_COLUMN_ERROR, "", text);
    put_estimate(view, sink, l, HFN_COLUMN_SELF, BOLD, about, t->self_ns, t->self_error_ns);
    snprintf(text, sizeof text, t->self_error_ns == HOTFN_ERROR_UNKNOWN ? "-" : "%.1f%%", share);
    hfn_layout_put(view, sink, l, HFN_COLUMN_SHARE, share >= 5 ? HOT : "", text);
    if (t->below & HOTFN_BELOW_P99) {
        put_bound(view, sink, l, HFN_COLUMN_P99, t->p99_ns);
    } else if (t->p99_ns) {
        put_time(view, sink, l, HFN_COLUMN_P99, "", "", t->p99_ns);
    } else {
        hfn_layout_put(view, sink, l, HFN_COLUMN_P99, "", "-");
    }
    if (t->max_ns > 0 || view->time.tick_ns <= 0) {
        put_time(view, sink, l, HFN_COLUMN_MAX, slow ? HOT : "", "", t->max_ns);
    } else {
        put_bound(view, sink, l, HFN_COLUMN_MAX, (uint64_t)view->time.tick_ns);
    }
}

void hfn_table_time_remark(const hotfn_record_timing *t, char *out, size_t out_bytes)
{
    char calls[32], only[120] = "";
    if (t->timed_calls == 0 && t->reason[0]) {
        snprintf(only, sizeof only, " (counted only: %.90s)", t->reason);
    }
    if (t->open_calls == 1 && t->timed_calls == 1) {
        snprintf(out, out_bytes, "%s (did not return)", only);
    } else if (t->open_calls > 0) {
        snprintf(out, out_bytes, "%s (%s call%s did not return)", only,
                 hfn_table_grouped(t->open_calls, calls), hfn_table_s(t->open_calls));
    } else {
        snprintf(out, out_bytes, "%s", only);
    }
}

/* ---- Below the table. */

static const char *name_of(const hfn_view *view, uint32_t index, char *out, size_t out_bytes)
{
    hotfn_record_function f;
    if (index == HOTFN_NO_FUNCTION) {
        return "(outside)";
    }
    hfn_view_function(view, index, &f);
    return hfn_view_display(view, &f, out, out_bytes);
}

static void put_function(const hfn_view *view, hfn_sink *sink, uint32_t index)
{
    char shown[8192];
    const char *name = name_of(view, index, shown, sizeof shown);
    hfn_table_function(sink, name, hfn_table_note_width(view));
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

/* The slowest calls first: each call that is shown takes one pass over all. */
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
            bool is_next = s.duration_ns < below || (s.duration_ns == below && i > below_index);
            if (is_next && (best_index == UINT32_MAX || s.duration_ns > best.duration_ns)) {
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

/* If there is a glob, only edges to and from functions that match it are listed. */
static bool is_listed_edge(const hfn_view *view, const hotfn_record_edge *edge)
{
    const uint32_t ends[] = { edge->caller, edge->callee };
    for (size_t i = 0; view->options.match && i < HFN_COUNT_OF(ends); i++) {
        if (ends[i] < view->info.function_count && hfn_view_matches(view, ends[i])) {
            return true;
        }
    }
    return !view->options.match;
}

#define ARROW " -> "

/* Write both names on one line of at most room characters, 0: unlimited.  The room that a short
 * name does not need is given to the other. */
static void put_edge_names(const hfn_view *view, hfn_sink *sink, const hotfn_record_edge *edge,
                           size_t room)
{
    char shown[2][8192];
    const char *caller = name_of(view, edge->caller, shown[0], sizeof shown[0]);
    const char *callee = name_of(view, edge->callee, shown[1], sizeof shown[1]);
    size_t a = hfn_table_characters(caller), b = hfn_table_characters(callee), half = room / 2;
    a = room > 0 ? a : view->options.name_width;
    b = room > 0 ? b : view->options.name_width;
    if (half > 0 && a + b > room) {
        a = b < half ? room - b : a < half ? a : half;
        b = room - a;
    }
    hfn_table_function(sink, caller, a);
    hfn_sink_text(sink, ARROW);
    hfn_table_function(sink, callee, b);
    hfn_sink_text(sink, "\n");
}

/* A narrow terminal has no room for the totals. */
static void put_edges(const hfn_view *view, hfn_sink *sink, const hotfn_record_edge *edges,
                      uint32_t count)
{
    uint32_t most = view->options.limit ? view->options.limit : UINT32_MAX;
    char calls[32], took[24];
    size_t width = view->options.width;
    bool narrow = width > 0 && width < 64;
    size_t before = (narrow ? 12 : 30) + strlen(ARROW), room = width > before ? width - before : 0;
    hfn_sink_format(sink, "\n%*s  caller -> callee\n", narrow ? 10 : 28,
                    narrow ? "calls" : "calls       total");
    for (uint32_t i = 0; i < count && i < most; i++) {
        hfn_sink_format(sink, "%*s  ", narrow ? 10 : 16, hfn_table_grouped(edges[i].calls, calls));
        if (!narrow) {
            hfn_sink_format(sink, "%10s  ", time_text(edges[i].total_ns, took));
        }
        put_edge_names(view, sink, &edges[i], room);
    }
    if (count > most) {
        hfn_sink_format(sink, "  ... and %" PRIu32 " more (-n 0 shows all)\n", count - most);
    }
    hfn_sink_text(
        sink, count > 0 ? "a caller is the nearest function that is timed; functions that are only "
                          "counted are passed over\n"
                        : "no callers are known: only functions that are timed have them\n");
}

/* The edge with the largest total first.  False: no memory. */
static bool put_sorted_edges(const hfn_view *view, hfn_sink *sink)
{
    size_t bytes = (view->time.edge_count + 1u) * sizeof(hotfn_record_edge);
    hotfn_record_edge *edges = hfn_allocate_zeroed(&view->env, bytes),
                      *room = hfn_allocate_zeroed(&view->env, bytes);
    bool ok = edges && room;
    uint32_t count = 0;
    for (uint32_t i = 0; ok && i < view->time.edge_count; i++) {
        hfn_view_edge(view, i, &edges[count]);
        count += is_listed_edge(view, &edges[count]);
    }
    if (ok) {
        put_edges(view, sink, hfn_sort_items(edges, room, count, sizeof *edges, is_costlier),
                  count);
    }
    hfn_free_memory(&view->env, edges, bytes);
    hfn_free_memory(&view->env, room, bytes);
    return ok;
}

typedef struct loss {
    uint64_t count;
    const char *singular, *plural;
} loss;

/* Report losses and irregularities of the measurement; those with a count of 0 are omitted. */
static void put_losses(const hfn_view *view, hfn_sink *sink)
{
    const hotfn_record_time_info *t = &view->time;
    const loss losses[] = {
        { t->nodes_merged, "entry has no node of its own in the call tree and was merged",
          "entries have no nodes of their own in the call tree and were merged" },
        { t->histograms_lost, "function has no percentiles: the histograms were used up",
          "functions have no percentiles: the histograms were used up" },
        { t->slow_lost, "slow call was overwritten by a later one",
          "slow calls were overwritten by later ones" },
        { t->events_lost, "entry or exit was overwritten by a later one",
          "entries and exits were overwritten by later ones" },
        { t->abandoned_exits, "call was left by longjmp, an exception or a thread's end",
          "calls were left by longjmp, an exception or a thread's end" },
        { t->clock_went_back, "call ended at an earlier clock value than it began",
          "calls ended at earlier clock values than they began" },
    };
    char count[32];
    for (size_t i = 0; i < HFN_COUNT_OF(losses); i++) {
        if (losses[i].count > 0) {
            hfn_sink_format(sink, "  %s %s\n", hfn_table_grouped(losses[i].count, count),
                            losses[i].count == 1 ? losses[i].singular : losses[i].plural);
        }
    }
}

/* Functions that were counted but not timed: hot ones may be among them. */
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
                        " of the functions called, with %s call%s (%.1f %%); their "
                        "times are part of their callers'; --json has the reason of each\n",
                        functions, hfn_table_grouped(calls, grouped), hfn_table_s(calls),
                        100.0 * (double)calls / (double)view->total_calls);
    }
}

static void put_line(hfn_sink *sink, const char *note)
{
    if (note[0]) {
        hfn_sink_format(sink, "%s\n", note);
    }
}

static void put_ticker(const hfn_view *view, hfn_sink *sink)
{
    const hotfn_record_time_info *t = &view->time;
    char error[24], used[24];
    if (t->ticker == HOTFN_TICKER_NONE) {
        return;
    }
    hfn_sink_format(
        sink,
        "ticks: %s; a total of 10 ms has an error of %.1f%%; the ticker took %s of "
        "processor time of its own\n",
        t->ticker == HOTFN_TICKER_SPINS ? "from a thread of hotfn that watches the clock"
        : t->ticker == HOTFN_TICKER_QUOTA
            ? "from a thread that sleeps, because a quota limits processor time"
            : "from a thread that sleeps, because only one processor is allowed",
        100 * get_relative_error(t->tick_error_ns, 1e7), time_text(t->ticker_cpu_ns, used));
    if (t->coarse_share >= 0.05) {
        hfn_sink_format(sink,
                        "ticks were coarse in %.0f%% of the run, as no processor was idle: times "
                        "below %s are unknown (--clock cpu needs no idle processor)\n",
                        100 * t->coarse_share, time_text((uint64_t)t->tick_error_ns, error));
    }
    if (t->missing_share >= 0.001) {
        hfn_sink_format(sink,
                        "ticks were missing in %.1f%% of the run: the time of these stretches "
                        "belongs to whatever ran at their end\n",
                        100 * t->missing_share);
    }
    if (view->info.state == HOTFN_RECORD_BROKEN || view->info.repaired[0]) {
        hfn_sink_text(sink, "the ticker ended before the record was finished: no ticks came after "
                            "that, and later calls have no times\n");
    }
}

static void put_clock(const hfn_view *view, hfn_sink *sink)
{
    const hotfn_record_time_info *t = &view->time;
    char at[24];
    if (t->clock == HOTFN_CLOCK_MERGED) {
        hfn_sink_text(sink, "clock: nanoseconds of the merged runs' clocks\n");
    } else {
        hfn_sink_format(sink, "clock: %s, %.6g MHz, resolution %s\n", hfn_clock_name(t->clock),
                        (double)t->ticks_per_second / 1e6,
                        time_text((uint64_t)(t->resolution_ns + 0.5), at));
    }
    put_ticker(view, sink);
    if (t->clock_stopped_ns > 0) {
        hfn_sink_format(
            sink,
            "the program disabled the clock for itself %s after the start: later calls were only "
            "counted\n",
            time_text(t->clock_stopped_ns, at));
    }
    if (t->waiting_stopped_ns > 0) {
        hfn_sink_format(sink,
                        "the program filtered its system calls %s after the start: from then on "
                        "its times include waiting\n",
                        time_text(t->waiting_stopped_ns, at));
    }
}

static void put_marks(const hfn_view *view, hfn_sink *sink)
{
    if (!is_sample(view)) {
        hfn_sink_text(sink, "~ marks times with an error above 10%; < marks times too short to be "
                            "known\n");
        return;
    }
    if (view->time.sample_mean > 1) {
        hfn_sink_format(sink, "sampled: one call in %" PRIu32 " was timed", view->time.sample_mean);
    } else { /* sampled only to keep a budget */
        hfn_sink_text(sink, "sampled: as many calls were timed as the budget allowed");
    }
    hfn_sink_text(sink, ", so a total is an estimate, and error is one standard error; calls of a "
                        "function within its own calls are counted again; callers and self times "
                        "are not known\n");
}

bool hfn_table_time_notes(const hfn_view *view, hfn_sink *sink)
{
    const hotfn_record_time_info *t = &view->time;
    char busy[24], note[200];
    if (is_sample(view)) {
        hfn_sink_text(sink, "\ntimed: a sample");
    } else {
        hfn_sink_format(sink, "\ntimed: %s in hooked functions", time_text(t->busy_ns, busy));
    }
    hfn_table_waiting(view, sink);
    if (t->ticker != HOTFN_TICKER_NONE && t->cost_outside_ns > 0) {
        hfn_sink_format(sink,
                        "; it does not include the hooks: %.1f ns in a timed call, half of which "
                        "may be missing in the function's self time\n",
                        t->cost_outside_ns);
    } else if (t->cost_inside_ns + t->cost_outside_ns > 0) {
        hfn_sink_format(sink,
                        "; a hook costs %.1f ns in a timed call (%.1f ns of it within the measured "
                        "time) and %.1f ns in a counted one",
                        t->cost_inside_ns + t->cost_outside_ns, t->cost_inside_ns,
                        t->count_cost_ns);
        hfn_sink_text(sink, "\n");
    } else {
        hfn_sink_text(sink, "; it does not include the cost of the hooks\n");
    }
    put_clock(view, sink);
    put_marks(view, sink);
    put_counted_only(view, sink);
    put_line(sink, hfn_view_cost_note(view, note));
    hfn_table_memory_notes(view, sink);
    put_losses(view, sink);
    put_slow_calls(view, sink);
    return !(view->options.flags & HOTFN_EXPORT_EDGES) || put_sorted_edges(view, sink);
}
