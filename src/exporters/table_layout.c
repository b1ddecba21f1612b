/* SPDX-License-Identifier: MIT */
/* The columns of the table and their widths.  A pipe gets all columns at full width.  If a
 * terminal has little room for names, a module to which all rows belong moves into the title; then
 * numbers are abbreviated, then the least important columns are dropped, never the sort column. */
#include "exporters/table.h"

#include <stdio.h>
#include <string.h>

#define MAX_MODULE 24 /* characters */
#define MODULE_NARROW 12
/* Characters of a line that remain for names: if there are fewer, ... */
#define MODULE_NAME_WIDTH 48 /* a common module is shown in the title */
#define WANTED_NAME_WIDTH 32 /* numbers are abbreviated               */
#define MIN_NAME_WIDTH 22    /* columns are dropped                   */
#define BETWEEN 2            /* blanks between two columns */

static const struct {
    const char *title;
    uint8_t width;
} columns[HFN_COLUMN_COUNT] = {
    [HFN_COLUMN_RANK] = { "rank", 5 },         [HFN_COLUMN_CALLS] = { "calls", 18 },
    [HFN_COLUMN_TOTAL] = { "total", 10 },      [HFN_COLUMN_WAITED] = { "waited", 10 },
    [HFN_COLUMN_ERROR] = { "error", 6 },       [HFN_COLUMN_SELF] = { "self", 10 },
    [HFN_COLUMN_SHARE] = { "share", 7 },       [HFN_COLUMN_P99] = { "p99", 9 },
    [HFN_COLUMN_MAX] = { "max", 9 },           [HFN_COLUMN_ALLOCATED] = { "allocated", 9 },
    [HFN_COLUMN_BLOCKS] = { "in blocks", 12 }, [HFN_COLUMN_FREED] = { "freed", 9 },
    [HFN_COLUMN_BELOW] = { "+callees", 9 },    [HFN_COLUMN_MODULE] = { "module", 6 },
};

/* In the order in which columns are dropped. */
static const uint8_t dropped_first[] = {
    HFN_COLUMN_P99,   HFN_COLUMN_BLOCKS,    HFN_COLUMN_FREED,  HFN_COLUMN_BELOW, HFN_COLUMN_MAX,
    HFN_COLUMN_ERROR, HFN_COLUMN_RANK,      HFN_COLUMN_MODULE, HFN_COLUMN_TOTAL, HFN_COLUMN_WAITED,
    HFN_COLUMN_SHARE, HFN_COLUMN_ALLOCATED, HFN_COLUMN_SELF,
};

/* The column of the sort key, which is never dropped. */
static uint32_t get_sort_column(const hfn_view *view)
{
    switch (view->options.by) {
    case HOTFN_BY_CALLS: return HFN_COLUMN_CALLS;
    case HOTFN_BY_TOTAL: return HFN_COLUMN_TOTAL;
    case HOTFN_BY_MAX: return HFN_COLUMN_MAX;
    case HOTFN_BY_ALLOC: return HFN_COLUMN_ALLOCATED;
    default: return view->time.flags ? HFN_COLUMN_SELF : HFN_COLUMN_CALLS;
    }
}

static bool is_present(const hfn_view *view, uint32_t column)
{
    switch (column) {
    case HFN_COLUMN_ERROR: return view->time.flags & HOTFN_TIMING_SAMPLED;
    case HFN_COLUMN_WAITED: return hfn_table_shows_waiting(view);
    case HFN_COLUMN_TOTAL:
    case HFN_COLUMN_SELF:
    case HFN_COLUMN_P99:
    case HFN_COLUMN_MAX: return view->time.flags;
    case HFN_COLUMN_ALLOCATED:
    case HFN_COLUMN_BLOCKS:
    case HFN_COLUMN_FREED:
    case HFN_COLUMN_BELOW: return view->time.flags & HOTFN_TIMING_ALLOC;
    default: return true;
    }
}

/* Find the widest module name and the widest number of calls. */
static void measure_columns(const hfn_view *view, uint32_t rows, size_t *module, size_t *calls)
{
    char text[33];
    *module = columns[HFN_COLUMN_MODULE].width;
    *calls = strlen(columns[HFN_COLUMN_CALLS].title);
    for (uint32_t i = 0; i < rows; i++) {
        hotfn_record_function f;
        hotfn_record_module m;
        hfn_view_function(view, view->order[i], &f);
        hfn_view_module(view, f.module, &m);
        size_t name = hfn_table_characters(m.file);
        size_t count = strlen(hfn_table_calls(view, view->order[i], f.calls, text));
        *module = name > *module ? name : *module;
        *calls = count > *calls ? count : *calls;
    }
    *module = *module < MAX_MODULE ? *module : MAX_MODULE;
}

/* Return the module of all rows, or NULL if they belong to several. */
static const char *find_only_module(const hfn_view *view, uint32_t rows)
{
    hotfn_record_module m = HOTFN_RECORD_MODULE_INIT;
    uint32_t first = 0;
    for (uint32_t i = 0; i < rows; i++) {
        hotfn_record_function f;
        hfn_view_function(view, view->order[i], &f);
        if (i > 0 && f.module != first) {
            return NULL;
        }
        first = f.module;
    }
    hfn_view_module(view, first, &m);
    return rows > 0 ? m.file : NULL;
}

/* The number of terminal columns that remain for names. */
static size_t get_name_width(const hfn_table_layout *l, size_t terminal)
{
    size_t taken = 0;
    for (uint32_t i = 0; i < HFN_COLUMN_COUNT; i++) {
        taken += l->widths[i] ? l->widths[i] + BETWEEN : 0;
    }
    return terminal > taken ? terminal - taken : 0;
}

void hfn_layout_choose(const hfn_view *view, uint32_t rows, hfn_table_layout *out)
{
    size_t module, calls, terminal = view->options.width;
    *out = (hfn_table_layout){ .room = 0 };
    for (uint32_t i = 0; i < HFN_COLUMN_COUNT; i++) {
        out->widths[i] = is_present(view, i) ? columns[i].width : 0;
    }
    measure_columns(view, rows, &module, &calls);
    out->widths[HFN_COLUMN_MODULE] = module;
    if (view->time.flags) { /* a timed table has more columns */
        out->widths[HFN_COLUMN_CALLS] = 16;
        out->widths[HFN_COLUMN_SHARE] = 6;
    }
    if (terminal == 0) {
        return;
    }
    if (get_name_width(out, terminal) < MODULE_NAME_WIDTH &&
        (out->only_module = find_only_module(view, rows)) != NULL) {
        out->widths[HFN_COLUMN_MODULE] = 0;
    }
    if (calls > out->widths[HFN_COLUMN_CALLS] ||
        get_name_width(out, terminal) < WANTED_NAME_WIDTH) {
        out->widths[HFN_COLUMN_CALLS] = calls;
        module = module < MODULE_NARROW ? module : MODULE_NARROW;
        out->widths[HFN_COLUMN_MODULE] = out->only_module ? 0 : module;
    }
    for (size_t i = 0; i < HFN_COUNT_OF(dropped_first); i++) {
        if (dropped_first[i] != get_sort_column(view) &&
            get_name_width(out, terminal) < MIN_NAME_WIDTH) {
            out->widths[dropped_first[i]] = 0;
        }
    }
    out->room = get_name_width(out, terminal);
    out->room = out->room ? out->room : 1;
}

static void begin_column(hfn_sink *sink, const hfn_table_layout *l, uint32_t column)
{
    for (uint32_t i = 0; i < column; i++) {
        if (l->widths[i]) {
            hfn_sink_format(sink, "%*s", BETWEEN, "");
            return;
        }
    }
}

void hfn_layout_put(const hfn_view *view, hfn_sink *sink, const hfn_table_layout *l,
                    uint32_t column, const char *color, const char *text)
{
    if (l->widths[column] == 0) {
        return;
    }
    begin_column(sink, l, column);
    hfn_sink_format(sink, "%s%*s%s", hfn_table_color(view, color), (int)l->widths[column], text,
                    *color ? hfn_table_color(view, PLAIN) : "");
}

void hfn_layout_put_module(const hfn_view *view, hfn_sink *sink, const hfn_table_layout *l,
                           const char *name)
{
    size_t width = l->widths[HFN_COLUMN_MODULE];
    if (width > 0) {
        begin_column(sink, l, HFN_COLUMN_MODULE);
        hfn_sink_text(sink, hfn_table_color(view, DIM));
        hfn_table_name(sink, name, width);
        hfn_sink_format(
            sink, "%*s%s",
            hfn_table_characters(name) < width ? (int)(width - hfn_table_characters(name)) : 0, "",
            hfn_table_color(view, PLAIN));
    }
    hfn_sink_format(sink, "%*s", BETWEEN, "");
}

void hfn_layout_titles(const hfn_view *view, hfn_sink *sink, const hfn_table_layout *l)
{
    hfn_sink_text(sink, hfn_table_color(view, DIM));
    for (uint32_t i = 0; i < HFN_COLUMN_COUNT; i++) {
        int width = (int)l->widths[i];
        if (width > 0) {
            begin_column(sink, l, i);
            hfn_sink_format(sink, "%*s", i == HFN_COLUMN_MODULE ? -width : width, columns[i].title);
        }
    }
    hfn_sink_format(sink, "%*sfunction", BETWEEN, "");
    if (l->only_module) {
        hfn_sink_text(sink, " of ");
        hfn_table_name(sink, l->only_module, l->room > 12 ? l->room - 12 : 1);
    }
    hfn_sink_format(sink, "%s\n", hfn_table_color(view, PLAIN));
}

/* Without this line a reader could believe that the record does not have the dropped columns. */
void hfn_layout_notes(const hfn_view *view, hfn_sink *sink, const hfn_table_layout *l)
{
    const char *before = "  no room for: ";
    for (uint32_t i = 0; i < HFN_COLUMN_COUNT; i++) {
        bool in_title = i == HFN_COLUMN_MODULE && l->only_module;
        if (is_present(view, i) && l->widths[i] == 0 && !in_title) {
            hfn_sink_format(sink, "%s%s", before, columns[i].title);
            before = ", ";
        }
    }
    hfn_sink_text(sink, *before == ',' ? "\n" : "");
}
