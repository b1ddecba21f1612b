/* SPDX-License-Identifier: MIT */
/* The budget in reports: its share, the hooks' cost, and the functions that were sampled, only
 * counted or unhooked to keep it, with times and reasons.  A count that lacks the calls of an
 * unhooked period is marked as a lower bound wherever it is shown. */
#include "exporters/budget.h"

#include "exporters/json_fields.h"
#include "exporters/table.h"

#include <inttypes.h>

#define FUNCTIONS_SHOWN 20u

const char *hfn_level_name(uint32_t level)
{
    static const char *const names[] = { "not hooked", "timed", "sampled", "counted", "unhooked" };
    return level < HFN_COUNT_OF(names) ? names[level] : "?";
}

bool hfn_view_is_lower_bound(const hfn_view *view, uint32_t function)
{
    return hotfn_record_get_budget_state(view->record, function) & HOTFN_BUDGET_LOWER_BOUND;
}

bool hfn_view_has_budget(const hfn_view *view)
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

/* A page names functions by their index in the record, a report by their display name. */
static hotfn_json *create_change(const hfn_view *view, const hotfn_record_change *c, bool in_page)
{
    hotfn_json *o = hotfn_json_create_object();
    hfn_add_number(o, "at_ns", c->at_ns);
    if (in_page) {
        int64_t index = c->function == HOTFN_NO_FUNCTION ? -1 : (int64_t)c->function;
        hotfn_json_add(o, "function", hotfn_json_create_signed(index));
    } else if (c->function != HOTFN_NO_FUNCTION) {
        char shown[8192];
        hotfn_record_function f;
        hfn_view_function(view, c->function, &f);
        hfn_add_text(o, "function", hfn_view_display(view, &f, shown, sizeof shown));
    }
    hfn_add_text(o, "from", hfn_level_name(c->from));
    hfn_add_text(o, "to", hfn_level_name(c->to));
    hfn_add_text(o, "why", c->why == HOTFN_BUDGET_OVER_BUDGET ? "over-budget" : "try-again");
    hfn_add_number(o, "calls_per_second", c->calls_per_second);
    hfn_add_decimal(o, "cost", (double)c->cost_ppm / 1e6, 6);
    return o;
}

static void write_decimal(hotfn_json_writer *out, const char *key, double value, uint32_t digits)
{
    hotfn_json_write(out, key, hotfn_json_create_decimal(value, digits));
}

static void write_number(hotfn_json_writer *out, const char *key, uint64_t value)
{
    hotfn_json_write(out, key, hotfn_json_create_number(value));
}

void hfn_budget_write(const hfn_view *view, hotfn_json_writer *out, bool in_page)
{
    hotfn_record_budget b = HOTFN_RECORD_BUDGET_INIT;
    hotfn_record_get_budget(view->record, &b);
    if (b.share_ppm == 0) {
        return;
    }
    hotfn_json_begin_object(out, "budget");
    write_decimal(out, "share", (double)b.share_ppm / 1e6, 6);
    write_decimal(out, "taken", hfn_budget_compute_cost(&b), 6);
    write_number(out, "cpu_ns", b.cpu_ns);
    write_number(out, "cost_ns", b.cost_ns);
    write_number(out, "timing_ns", b.timing_ns);
    write_number(out, "start_ns", b.start_ns);
    write_decimal(out, "count_cost_ns", b.count_cost_ns, 3);
    write_decimal(out, "sample_cost_ns", b.sample_cost_ns, 3);
    write_decimal(out, "time_cost_ns", b.time_cost_ns, 3);
    write_number(out, "stops", b.stops);
    write_number(out, "failed_stops", b.failed_stops);
    write_number(out, "stopped_ns", b.stopped_ns);
    write_number(out, "longest_stop_ns", b.longest_stop_ns);
    hotfn_json_write(out, "note", hotfn_json_create_text(b.note));
    write_number(out, "changes_lost", b.changes_lost);
    hotfn_json_begin_array(out, "changes");
    for (uint32_t i = 0; i < b.change_count; i++) {
        hotfn_record_change c = change_at(view, i);
        hotfn_json_write(out, NULL, create_change(view, &c, in_page));
    }
    hotfn_json_end(out);
    hotfn_json_end(out);
}

double hfn_budget_compute_cost(const hotfn_record_budget *b)
{
    uint64_t hooks = b->cost_ns > b->stopped_ns ? b->cost_ns - b->stopped_ns : 0;
    return b->cpu_ns > hooks ? (double)b->cost_ns / (double)(b->cpu_ns - hooks) : 0;
}

/* The periods without a hook as [from, to] since the start; to is null if the hook never
 * returned. */
static hotfn_json *create_unhooked(const hfn_view *view, uint32_t function)
{
    hotfn_record_budget b = HOTFN_RECORD_BUDGET_INIT;
    hotfn_json *periods = hotfn_json_create_array(), *period = NULL;
    bool unhooked = false;
    hotfn_record_get_budget(view->record, &b);
    for (uint32_t i = 0; i < b.change_count; i++) {
        hotfn_record_change c = change_at(view, i);
        if (c.function != function || unhooked == (c.to == HOTFN_BUDGET_UNHOOKED)) {
            continue;
        }
        period = unhooked ? period : hotfn_json_create_array();
        hfn_add_number(period, NULL, c.at_ns);
        if (unhooked) {
            hotfn_json_add(periods, NULL, period);
        }
        unhooked = !unhooked;
    }
    if (unhooked) {
        hfn_add_text(period, NULL, NULL);
        hotfn_json_add(periods, NULL, period);
    }
    return periods;
}

void hfn_budget_add_function(const hfn_view *view, hotfn_json *object, uint32_t function)
{
    if (hotfn_record_get_budget_state(view->record, function) != 0) {
        hfn_add_bool(object, "calls_at_least", hfn_view_is_lower_bound(view, function));
        hotfn_json_add(object, "unhooked_ns", create_unhooked(view, function));
    }
}

/* ---- The table. */

typedef struct summary {
    uint64_t unhooked_ns, first_ns, calls_per_second;
    uint32_t lowest, times, cost_ppm;
    bool is_unhooked;
} summary;

/* Sum up the changes of a function, the first of which has index `first`.  The cost is that at
 * which the function reached its lowest level. */
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
        s.unhooked_ns += s.is_unhooked ? c.at_ns - since : 0;
        s.is_unhooked = c.to == HOTFN_BUDGET_UNHOOKED;
        since = c.at_ns;
        if (c.to > s.lowest || (c.to == s.lowest && c.cost_ppm > s.cost_ppm)) {
            s.lowest = c.to;
            s.cost_ppm = c.cost_ppm;
            s.calls_per_second = c.calls_per_second;
        }
    }
    s.unhooked_ns += s.is_unhooked && view->info.end_ns && end_ns > since ? end_ns - since : 0;
    return s;
}

static bool has_earlier_change(const hfn_view *view, uint32_t index)
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
        hfn_sink_format(sink, " for %.3f s,", (double)s->unhooked_ns / 1e9);
    }
    /* the cost of timing is a prediction: a function is changed before it takes that much */
    hfn_sink_format(
        sink, " from %.3f s on (%" PRIu32 " time%s%s): %s calls a second %s %.1f%%\n",
        (double)s->first_ns / 1e9, s->times, hfn_table_s(s->times),
        s->is_unhooked ? ", still at the end" : "", hfn_table_grouped(s->calls_per_second, calls),
        s->lowest == HOTFN_BUDGET_UNHOOKED ? "took" : "would take", (double)s->cost_ppm / 1e4);
}

static double to_ms(uint64_t ns)
{
    return (double)ns / 1e6;
}

/* The parts of the cost. */
static void put_parts(hfn_sink *sink, const hotfn_record_budget *b)
{
    uint64_t others = b->stopped_ns + b->timing_ns + b->start_ns;
    uint64_t counts = b->cost_ns > others ? b->cost_ns - others : 0;
    hfn_sink_format(sink, ": counts %.3f ms (%.2f ns a call)", to_ms(counts), b->count_cost_ns);
    if (b->time_cost_ns > 0) {
        hfn_sink_format(sink, ", timed calls %.3f ms (%.0f ns each)", to_ms(b->timing_ns),
                        b->time_cost_ns);
    }
    hfn_sink_format(sink, ", installing the hooks %.3f ms, %" PRIu32 " stop%s %.3f ms\n",
                    to_ms(b->start_ns), b->stops, hfn_table_s(b->stops), to_ms(b->stopped_ns));
}

void hfn_budget_write_table(const hfn_view *view, hfn_sink *sink)
{
    hotfn_record_budget b = HOTFN_RECORD_BUDGET_INIT;
    uint32_t found = 0;
    hotfn_record_get_budget(view->record, &b);
    if (b.share_ppm == 0) {
        return;
    }
    hfn_sink_format(
        sink,
        "\nbudget %.4g%%: hooks took %.2f%% of the program's own processor time (%.3f s with hooks)",
        (double)b.share_ppm / 1e4, 100 * hfn_budget_compute_cost(&b), (double)b.cpu_ns / 1e9);
    put_parts(sink, &b);
    if (b.note[0]) {
        hfn_sink_text(sink, "THE BUDGET WAS NOT KEPT: ");
        hfn_table_name(sink, b.note, 0);
        hfn_sink_text(sink, "\n");
    }
    for (uint32_t i = 0; i < b.change_count; i++) {
        hotfn_record_change c = change_at(view, i);
        if (c.function == HOTFN_NO_FUNCTION || has_earlier_change(view, i)) {
            continue;
        }
        if (found++ < FUNCTIONS_SHOWN) {
            summary s = sum_up(view, &b, i);
            hfn_sink_text(sink,
                          found == 1 ? "watched less closely, because they cost too much:\n" : "");
            put_summary(view, sink, c.function, &s);
        }
    }
    if (found > FUNCTIONS_SHOWN) {
        hfn_sink_format(sink, "  ... and %" PRIu32 " more (--json lists all)\n",
                        found - FUNCTIONS_SHOWN);
    }
    if (found > 0) {
        hfn_sink_text(
            sink, "  \">\" marks lower bounds: calls of an unhooked function are not counted\n");
    }
}
