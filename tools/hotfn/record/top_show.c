/* SPDX-License-Identifier: MIT */
/* One screen of the live view, and the same as JSON (hotfn.top/1).  A screen is collected in the
 * buffer of stdout and written at once, so that it does not flicker. */
#include "top.h"

#include "cli/budget_summary.h"
#include "cli/cli_options.h"
#include "cli/column_widths.h"
#include "cli/listing.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *get_name(const top_sample *s, const top_view *view, uint32_t index, char *out,
                            size_t bytes)
{
    hotfn_record_function f = HOTFN_RECORD_FUNCTION_INIT;
    hotfn_record_thread t = HOTFN_RECORD_THREAD_INIT;
    if (view->threads) {
        hotfn_record_get_thread(s->record, index, &t);
        snprintf(out, bytes, "%.16s (tid %" PRIu32 ")", t.name, t.tid);
        return out;
    }
    hotfn_record_get_function(s->record, index, &f);
    return hotfn_tool_demangle(NULL, f.name, out, bytes) > 0 ? out : f.name;
}

static const char *format_time(uint64_t ns, char out[32])
{
    double s = (double)ns / 1e9;
    snprintf(out, 32,
             s >= 1      ? "%.2f s"
             : s >= 1e-3 ? "%.2f ms"
             : s >= 1e-6 ? "%.2f us"
                         : "%.0f ns",
             s >= 1      ? s
             : s >= 1e-3 ? s * 1e3
             : s >= 1e-6 ? s * 1e6
                         : s * 1e9);
    return out;
}

static const char *format_bytes(uint64_t bytes, char out[32])
{
    static const char units[] = "kMGT";
    double value = (double)bytes;
    int unit = -1;
    while (value >= 999.5 && unit < 3) {
        value /= 1000;
        unit++;
    }
    if (unit < 0) {
        snprintf(out, 32, "%.0f B", value);
    } else {
        snprintf(out, 32, "%.*f %cB",
                 value < 9.995   ? 2
                 : value < 99.95 ? 1
                                 : 0,
                 value, units[unit]);
    }
    return out;
}

/* The share of the time that the hooks take, and how many functions the budget unhooked or times
 * less often. */
static void print_budget(FILE *out, const top_sample *s, uint32_t columns)
{
    char line[400];
    budget_counts w;
    if (s->budget.share_ppm == 0) {
        return;
    }
    w = budget_count_functions(s->record);
    snprintf(line, sizeof line,
             "budget %.4g%%: hooks took %.2f%%; unhooked now: %" PRIu32 ", timed less: %" PRIu32
             "%s%s",
             (double)s->budget.share_ppm / 1e4, 100 * budget_get_share(&s->budget), w.unhooked,
             w.timed_less, s->budget.note[0] ? "; NOT KEPT: " : "", s->budget.note);
    fit_cut(out, line, columns);
}

static void print_head(FILE *out, const top_sample *s, const top_view *view, uint32_t columns)
{
    char line[600], grouped[32], pid[32];
    uint64_t calls = 0;
    for (uint32_t i = 0; i < s->info.thread_count; i++) {
        calls += s->thread_calls[i];
    }
    snprintf(pid, sizeof pid, "  pid %" PRIu32, s->info.pid);
    snprintf(line, sizeof line, "hotfn top  %s%s  %.300s",
             hotfn_record_get_state_name(s->info.state), s->info.pid ? pid : "", s->info.command);
    fputs(view->color ? "\033[1m" : "", out);
    fit_cut(out, line, columns);
    fputs(view->color ? "\033[0m\033[K\n" : "\033[K\n", out);
    snprintf(line, sizeof line, "%s calls, %" PRIu32 " thread%s, by %s%s%s%s%s",
             listing_grouped(calls, grouped), s->info.thread_count,
             cli_plural(s->info.thread_count), top_orders[view->by], view->frozen ? ", frozen" : "",
             view->filter[0] || view->typing ? ", filter: " : "", view->filter,
             view->typing ? "_" : "");
    fit_cut(out, line, columns);
    fputs("\033[K\n", out);
    print_budget(out, s, columns);
    fit_cut(out, s->budget.share_ppm ? "" : s->times_note, columns); /* both share one line */
    fputs("\033[K\n", out);
}

/* ---- The columns: their widths; a column of width 0 is not shown. */

enum { RATE, CALLS, SELF, TOTAL, MEMORY, BUSY, COLUMNS };
#define NARROW_WIDTH 13     /* of rate and calls: 999,999,999/s */
#define MIN_NAME_COLUMNS 16 /* columns are dropped until names have this room */

typedef struct layout {
    uint32_t widths[COLUMNS];
    uint32_t room; /* for the name */
} layout;

static uint32_t compute_name_columns(const layout *l, uint32_t terminal)
{
    uint32_t taken = 1; /* two spaces before the name, one before each column but the first */
    for (uint32_t i = 0; i < COLUMNS; i++) {
        taken += l->widths[i] ? l->widths[i] + 1 : 0;
    }
    return terminal > taken ? terminal - taken : 0;
}

static layout choose_columns(const top_sample *s, const top_view *view, uint32_t terminal)
{
    static const uint8_t drop_order[] = { BUSY, TOTAL, MEMORY, SELF, CALLS, RATE };
    static const uint8_t sort_column[] = { RATE, CALLS, SELF, TOTAL, MEMORY };
    uint32_t time = s->timed ? 11 : 0, memory = s->with_memory && !view->threads ? 9 : 0;
    layout l = { { 16, 16, time, time, memory, s->timed ? 5 : 0 }, 0 };
    if (compute_name_columns(&l, terminal) < MIN_NAME_COLUMNS) {
        l.widths[RATE] = l.widths[CALLS] = NARROW_WIDTH;
    }
    for (uint32_t i = 0; i < sizeof drop_order; i++) {
        if (compute_name_columns(&l, terminal) < MIN_NAME_COLUMNS &&
            drop_order[i] != sort_column[view->by]) {
            l.widths[drop_order[i]] = 0;
        }
    }
    l.room = compute_name_columns(&l, terminal);
    return l;
}

static void print_cell(FILE *out, const layout *l, uint32_t column, const char *text)
{
    bool first = true;
    for (uint32_t i = 0; i < column; i++) {
        first &= l->widths[i] == 0;
    }
    if (l->widths[column]) {
        fprintf(out, "%s%*s", first ? "" : " ", (int)l->widths[column], text);
    }
}

static void print_titles(FILE *out, const top_view *view, const layout *l)
{
    static const char *const titles[] = {
        "calls/s", "calls", "self", "total", "allocated", "busy"
    };
    for (uint32_t i = 0; i < COLUMNS; i++) {
        print_cell(out, l, i, titles[i]);
    }
    fprintf(out, "  %s", view->threads ? "thread" : "function");
}

static void print_row(FILE *out, const top_sample *s, const top_view *view, const top_row *row,
                      const layout *l)
{
    char text[64], grouped[32], name[8192];
    bool counted_only = row->total_ns == 0 && !view->threads;
    snprintf(text, sizeof text, "%s/s", listing_grouped((uint64_t)(row->rate + 0.5), grouped));
    print_cell(out, l, RATE, text);
    /* a lower bound: calls while the function was unhooked were not counted */
    snprintf(text, sizeof text, "%s%s", row->budget_state & HOTFN_BUDGET_LOWER_BOUND ? ">" : "",
             listing_grouped(row->calls, grouped));
    print_cell(out, l, CALLS, text);
    print_cell(out, l, SELF, counted_only ? "-" : format_time(row->self_ns, grouped));
    print_cell(out, l, TOTAL, counted_only ? "-" : format_time(row->total_ns, grouped));
    print_cell(out, l, MEMORY, format_bytes(row->memory.allocated_bytes, grouped));
    snprintf(text, sizeof text, "%.0f%%", row->busy * 100);
    print_cell(out, l, BUSY, text);
    fputs("  ", out);
    fit_name(out, get_name(s, view, row->index, name, sizeof name), l->room);
}

void top_show(const top_sample *s, const top_sample *before, const top_view *view, uint32_t columns,
              uint32_t lines)
{
    uint32_t count = 0, room = lines > 6 ? lines - 5 : 1;
    FILE *out = stdout; /* whose buffer holds a screen */
    top_row *rows = top_sort_rows(s, before, view, &count);
    layout l = choose_columns(s, view, columns);
    if (rows) {
        uint32_t first = view->scroll < count ? view->scroll : count ? count - 1 : 0;
        fputs("\033[H", out);
        print_head(out, s, view, columns);
        fputs(view->color ? "\033[2m" : "", out);
        print_titles(out, view, &l);
        fputs(view->color ? "\033[0m\033[K\n" : "\033[K\n", out);
        for (uint32_t i = first; i < count && i - first < room; i++) {
            print_row(out, s, view, &rows[i], &l);
            fputs("\033[K\n", out);
        }
        fputs("\033[J", out);
        fprintf(out, "\033[%" PRIu32 ";1H", lines);
        fit_cut(out,
                view->typing       ? "type a part of a name, then Enter"
                : view->message[0] ? view->message
                : columns < 66     ? "q quit  / filter  T threads  f freeze"
                                   : "q quit  r c s t a order  / filter  T threads  f freeze  "
                                     "+ - speed  0 1 2 off, count, time",
                columns);
    }
    free(rows);
    fflush(out);
}

/* The same without cursor movement, for a script or a pipe. */
void top_print(const top_sample *s, const top_sample *before, const top_view *view)
{
    uint32_t count = 0;
    top_row *rows = top_sort_rows(s, before, view, &count);
    layout l = choose_columns(s, view, UINT32_MAX);
    l.widths[BUSY] = 0; /* meaningless for a finished run */
    print_titles(stdout, view, &l);
    putchar('\n');
    for (uint32_t i = 0; i < count; i++) {
        print_row(stdout, s, view, &rows[i], &l);
        putchar('\n');
    }
    free(rows);
}

/* ---- JSON. */

/* Add the members of a run with memory or a budget. */
static void add_watched(hotfn_json *o, const top_sample *s, const top_row *row)
{
    if (s->with_memory) {
        json_add_number(o, "allocated_bytes", row->memory.allocated_bytes);
        json_add_number(o, "freed_bytes", row->memory.freed_bytes);
    }
    if (row->budget_state) {
        json_add_text(o, "watched", budget_get_level_name(row->budget_state));
        json_add_bool(o, "calls_at_least", row->budget_state & HOTFN_BUDGET_LOWER_BOUND);
    }
}

static void write_rows(hotfn_json_writer *out, const top_sample *s, const top_sample *before,
                       const top_view *view, const char *key)
{
    uint32_t count = 0;
    char name[8192];
    top_row *rows = top_sort_rows(s, before, view, &count);
    hotfn_json_begin_array(out, key);
    for (uint32_t i = 0; i < count; i++) {
        hotfn_json *o = hotfn_json_create_object();
        json_add_text(o, "name", get_name(s, view, rows[i].index, name, sizeof name));
        json_add_number(o, "calls", rows[i].calls);
        json_add_decimal(o, "calls_per_second", rows[i].rate, 3);
        if (s->timed) {
            json_add_number(o, view->threads ? "busy_ns" : "self_ns", rows[i].self_ns);
        }
        if (s->timed && !view->threads) {
            json_add_number(o, "total_ns", rows[i].total_ns);
        }
        if (!view->threads) {
            add_watched(o, s, &rows[i]);
        }
        hotfn_json_write(out, NULL, o);
    }
    hotfn_json_end(out);
    free(rows);
}

void top_show_json(const top_sample *s, const top_sample *before, const top_view *view)
{
    hotfn_json_writer *out = json_open(stdout);
    top_view threads = *view;
    hotfn_json_begin_object(out, NULL);
    json_write_text(out, "schema", "hotfn.top/1");
    json_write_text(out, "state", hotfn_record_get_state_name(s->info.state));
    json_write_number(out, "pid", s->info.pid);
    hotfn_json_write(out, "seconds", hotfn_json_create_decimal(s->seconds, 6));
    json_write_bool(out, "timed", s->timed);
    if (s->times_note[0]) {
        json_write_text(out, "times_note", s->times_note);
    }
    if (s->budget.share_ppm) {
        hotfn_json *budget = hotfn_json_create_object();
        json_add_decimal(budget, "share", (double)s->budget.share_ppm / 1e6, 6);
        json_add_decimal(budget, "taken", budget_get_share(&s->budget), 6);
        json_add_text(budget, "note", s->budget.note);
        hotfn_json_write(out, "budget", budget);
    }
    write_rows(out, s, before, view, "functions");
    threads.threads = true;
    write_rows(out, s, before, &threads, "threads");
    hotfn_json_end(out);
    json_close(out);
}
