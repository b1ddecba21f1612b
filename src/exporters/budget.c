/* SPDX-License-Identifier: MIT */
/* What reports say of a budget: what it was, what hooks took, and which functions were watched less
 * closely, from when to when and why.  A count with a stretch missing is marked as a lower bound
 * wherever it is shown. */
#include "exporters/budget.h"

#include "exporters/table.h"

#include <inttypes.h>

#define FUNCTIONS_SHOWN 20u

const char *hfn_level_name(uint32_t level)
{
    static const char *const names[] = { "not hooked", "timed", "sampled", "counted", "unhooked" };
    return level < HFN_COUNT_OF(names) ? names[level] : "?";
}

bool hfn_view_at_least(const hfn_view *view, uint32_t function)
{
    return hotfn_record_get_budget_state(view->record, function) & HOTFN_BUDGET_AT_LEAST;
}

bool hfn_budget_marks(const hfn_view *view)
{
    hotfn_record_budget b = HOTFN_RECORD_BUDGET_INIT;
    hotfn_record_get_budget(view->record, &b);
    return b.share_ppm > 0;
}

static hotfn_record_change change_at(const hfn_view *view, uint32_t index)
{
    hotfn_record_change c = HOTFN_RECORD_CHANGE_INIT;
    hotfn_record_get_change(view->record, index, &c);
    return c;
}

/* ---- JSON. */

static void put_change(const hfn_view *view, hfn_sink *sink, const hotfn_record_change *c,
                       bool in_page)
{
    char shown[8192];
    hotfn_record_function f;
    hfn_sink_format(sink, "{\"at_ns\":%" PRIu64, c->at_ns);
    if (in_page) {
        hfn_sink_format(sink, ",\"function\":%" PRId64,
                        c->function == HOTFN_NO_FUNCTION ? -1 : (int64_t)c->function);
    } else if (c->function != HOTFN_NO_FUNCTION) {
        hfn_view_function(view, c->function, &f);
        hfn_sink_json_key(sink, "function", hfn_view_display(view, &f, shown, sizeof shown));
    }
    hfn_sink_format(sink, ",\"from\":\"%s\",\"to\":\"%s\",\"why\":\"%s\"", hfn_level_name(c->from),
                    hfn_level_name(c->to),
                    c->why == HOTFN_BUDGET_TOO_DEAR ? "too-dear" : "try-again");
    hfn_sink_format(sink, ",\"calls_per_second\":%" PRIu64 ",\"cost\":%.6f}", c->calls_per_second,
                    (double)c->cost_ppm / 1e6);
}

static void put_budget(const hfn_view *view, hfn_sink *sink, bool in_page)
{
    hotfn_record_budget b = HOTFN_RECORD_BUDGET_INIT;
    hotfn_record_get_budget(view->record, &b);
    if (b.share_ppm == 0) {
        return;
    }
    hfn_sink_format(sink, ",\n\"budget\":{\"share\":%.6f,\"taken\":%.6f", (double)b.share_ppm / 1e6,
                    hfn_budget_taken(&b));
    hfn_sink_format(sink, ",\"cpu_ns\":%" PRIu64 ",\"cost_ns\":%" PRIu64, b.cpu_ns, b.cost_ns);
    hfn_sink_format(sink, ",\"timing_ns\":%" PRIu64 ",\"start_ns\":%" PRIu64, b.timing_ns,
                    b.start_ns);
    hfn_sink_format(sink, ",\"count_cost_ns\":%.3f,\"sample_cost_ns\":%.3f,\"time_cost_ns\":%.3f",
                    b.count_cost_ns, b.sample_cost_ns, b.time_cost_ns);
    hfn_sink_format(sink, ",\"stops\":%" PRIu32 ",\"failed_stops\":%" PRIu32, b.stops,
                    b.failed_stops);
    hfn_sink_format(sink, ",\"stopped_ns\":%" PRIu64 ",\"longest_stop_ns\":%" PRIu64, b.stopped_ns,
                    b.longest_stop_ns);
    hfn_sink_text(sink, ",\"note\":");
    (in_page ? hfn_sink_json_page : hfn_sink_json)(sink, b.note);
    hfn_sink_format(sink, ",\"changes_lost\":%" PRIu64 ",\"changes\":[", b.changes_lost);
    for (uint32_t i = 0; i < b.change_count && !sink->failed; i++) {
        hotfn_record_change c = change_at(view, i);
        hfn_sink_text(sink, i ? ",\n" : "\n");
        put_change(view, sink, &c, in_page);
    }
    hfn_sink_text(sink, "]}");
}

void hfn_budget_json(const hfn_view *view, hfn_sink *sink)
{
    put_budget(view, sink, false);
}

void hfn_budget_json_page(const hfn_view *view, hfn_sink *sink)
{
    put_budget(view, sink, true);
}

double hfn_budget_taken(const hotfn_record_budget *b)
{
    uint64_t hooks = b->cost_ns > b->stopped_ns ? b->cost_ns - b->stopped_ns : 0;
    return b->cpu_ns > hooks ? (double)b->cost_ns / (double)(b->cpu_ns - hooks) : 0;
}

/* Times as [from, to] since the start; to is null if it was out to the end. */
void hfn_budget_json_function(const hfn_view *view, hfn_sink *sink, uint32_t function)
{
    hotfn_record_budget b = HOTFN_RECORD_BUDGET_INIT;
    const char *separator = "";
    bool out = false;
    if (hotfn_record_get_budget_state(view->record, function) == 0) {
        return;
    }
    hotfn_record_get_budget(view->record, &b);
    hfn_sink_format(sink, ",\"calls_at_least\":%s,\"unhooked_ns\":[",
                    hfn_view_at_least(view, function) ? "true" : "false");
    for (uint32_t i = 0; i < b.change_count; i++) {
        hotfn_record_change c = change_at(view, i);
        if (c.function != function || out == (c.to == HOTFN_BUDGET_UNHOOKED)) {
            continue;
        }
        hfn_sink_text(sink, out ? "," : separator);
        hfn_sink_format(sink, out ? "%" PRIu64 "]" : "[%" PRIu64, c.at_ns);
        out = !out;
        separator = ",";
    }
    hfn_sink_text(sink, out ? ",null]]" : "]");
}

/* ---- The table. */

typedef struct summary {
    uint64_t out_ns, first_ns, calls_per_second;
    uint32_t lowest, times, cost_ppm;
    bool is_out;
} summary;

/* From its first change on, which stands at index `first`; the cost is what brought it to its lowest level. */
static summary sum_up(const hfn_view *view, const hotfn_record_budget *b, uint32_t first)
{
    hotfn_record_change begin = change_at(view, first);
    uint64_t since = 0, end_ns = view->info.end_ns - view->info.start_ns;
    summary s = { .first_ns = begin.at_ns };
    for (uint32_t i = first; i < b->change_count; i++) {
        hotfn_record_change c = change_at(view, i);
        if (c.function != begin.function) {
            continue;
        }
        s.times += c.to > c.from;
        s.out_ns += s.is_out ? c.at_ns - since : 0;
        s.is_out = c.to == HOTFN_BUDGET_UNHOOKED;
        since = c.at_ns;
        if (c.to > s.lowest || (c.to == s.lowest && c.cost_ppm > s.cost_ppm)) {
            s.lowest = c.to;
            s.cost_ppm = c.cost_ppm;
            s.calls_per_second = c.calls_per_second;
        }
    }
    s.out_ns += s.is_out && view->info.end_ns && end_ns > since ? end_ns - since : 0;
    return s;
}

static bool came_before(const hfn_view *view, uint32_t index)
{
    uint32_t function = change_at(view, index).function;
    for (uint32_t i = 0; i < index; i++) {
        if (change_at(view, i).function == function) {
            return true;
        }
    }
    return false;
}

static void put_summary(const hfn_view *view, hfn_sink *sink, uint32_t function, const summary *s)
{
    char shown[8192], calls[32];
    hotfn_record_function f;
    hfn_view_function(view, function, &f);
    hfn_sink_text(sink, "  ");
    hfn_table_name(sink, hfn_view_display(view, &f, shown, sizeof shown), 0);
    hfn_sink_format(sink, ": %s", hfn_level_name(s->lowest));
    if (s->lowest == HOTFN_BUDGET_UNHOOKED) {
        hfn_sink_format(sink, " for %.3f s,", (double)s->out_ns / 1e9);
    }
    /* what timing takes is reduced before it is paid: the first calls are timed slowly */
    hfn_sink_format(
        sink, " from %.3f s on (%" PRIu32 " time%s%s): %s calls a second %s %.1f%%\n",
        (double)s->first_ns / 1e9, s->times, hfn_table_s(s->times),
        s->is_out ? ", still at the end" : "", hfn_table_grouped(s->calls_per_second, calls),
        s->lowest == HOTFN_BUDGET_UNHOOKED ? "took" : "would take", (double)s->cost_ppm / 1e4);
}

static double ms(uint64_t ns)
{
    return (double)ns / 1e6;
}

/* What the figure is made of.  Records of earlier builds tell of neither times nor start. */
static void put_parts(hfn_sink *sink, const hotfn_record_budget *b)
{
    uint64_t others = b->stopped_ns + b->timing_ns + b->start_ns;
    uint64_t counts = b->cost_ns > others ? b->cost_ns - others : 0;
    hfn_sink_format(sink, ": counts %.3f ms (%.2f ns a call)", ms(counts), b->count_cost_ns);
    if (b->time_cost_ns > 0) {
        hfn_sink_format(sink, ", timed calls %.3f ms (%.0f ns each)", ms(b->timing_ns),
                        b->time_cost_ns);
    }
    hfn_sink_format(sink, ", its start %.3f ms, %" PRIu32 " stop%s %.3f ms\n", ms(b->start_ns),
                    b->stops, hfn_table_s(b->stops), ms(b->stopped_ns));
}

void hfn_budget_table(const hfn_view *view, hfn_sink *sink)
{
    hotfn_record_budget b = HOTFN_RECORD_BUDGET_INIT;
    uint32_t found = 0;
    hotfn_record_get_budget(view->record, &b);
    if (b.share_ppm == 0) {
        return;
    }
    hfn_sink_format(
        sink, "\nbudget %.4g%%: hooks took %.2f%% of what the program took itself, %.3f s in all",
        (double)b.share_ppm / 1e4, 100 * hfn_budget_taken(&b), (double)b.cpu_ns / 1e9);
    put_parts(sink, &b);
    if (b.note[0]) {
        hfn_sink_text(sink, "THE BUDGET WAS NOT KEPT: ");
        hfn_table_name(sink, b.note, 0);
        hfn_sink_text(sink, "\n");
    }
    for (uint32_t i = 0; i < b.change_count; i++) {
        hotfn_record_change c = change_at(view, i);
        if (c.function == HOTFN_NO_FUNCTION || came_before(view, i)) {
            continue;
        }
        if (found++ < FUNCTIONS_SHOWN) {
            summary s = sum_up(view, &b, i);
            hfn_sink_text(sink, found == 1 ? "watched less closely, as they cost too much:\n" : "");
            put_summary(view, sink, c.function, &s);
        }
    }
    if (found > FUNCTIONS_SHOWN) {
        hfn_sink_format(sink, "  ... and %" PRIu32 " more (--json lists all)\n",
                        found - FUNCTIONS_SHOWN);
    }
    if (found > 0) {
        hfn_sink_text(sink, "  \">\" marks counts that miss what was called while unhooked\n");
    }
}
