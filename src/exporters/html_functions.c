/* SPDX-License-Identifier: MIT */
/* The functions of the page of a record, a column for each field. */
#include "exporters/budget.h"
#include "exporters/html_data.h"

#include <inttypes.h>
#include <stdio.h>

void hfn_page_write_column(hfn_page *p, const char *key, uint32_t begin, uint32_t end,
                           hfn_page_create_fn create)
{
    hotfn_json_begin_array(p->out, key);
    for (uint32_t i = begin; i < end && !p->sink->failed; i++) {
        hfn_view_reach(p->view, i - begin, end - begin);
        hotfn_json_write(p->out, NULL, create(p, i));
    }
    hotfn_json_end(p->out);
}

hotfn_json *hfn_page_create_index(uint32_t index, uint32_t none)
{
    return hotfn_json_create_signed(index == none ? -1 : (int64_t)index);
}

hotfn_json *hfn_page_create_rank(const hfn_page *p, uint32_t function)
{
    return hotfn_json_create_signed(function == HOTFN_NO_FUNCTION ? -1
                                                                  : (int64_t)p->ranks[function]);
}

/* ---- The order. */

bool hfn_page_sort(hfn_page *p)
{
    uint32_t count = p->view->info.function_count, rank = 0;
    if (hotfn_record_sort(p->view->record, HOTFN_BY_DEFAULT, p->order, count) != HOTFN_OK) {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        p->ranks[i] = UINT32_MAX;
    }
    for (hotfn_record_function f; rank < count; rank++) {
        hfn_view_function(p->view, p->order[rank], &f);
        if (!f.counted || f.calls == 0) {
            break;
        }
        p->ranks[p->order[rank]] = rank;
    }
    p->called_count = rank;
    for (uint32_t i = 0; i < count; i++) {
        if (p->ranks[i] == UINT32_MAX) {
            p->ranks[i] = rank;
            p->order[rank++] = i;
        }
    }
    for (p->timed_end = count; p->timed_end > 0; p->timed_end--) {
        hotfn_record_timing t;
        hfn_view_timing(p->view, p->order[p->timed_end - 1], &t);
        if (t.timed_calls > 0) {
            break;
        }
    }
    return true;
}

static hotfn_json *create_optional(bool present, uint64_t value)
{
    return present ? hotfn_json_create_number(value) : hotfn_json_create_text(NULL);
}

/* ---- Columns. */

static hotfn_json *create_name(hfn_page *p, uint32_t rank)
{
    hotfn_record_function f;
    hfn_view_function(p->view, p->order[rank], &f);
    return hotfn_json_create_text(hfn_view_display(p->view, &f, p->shown, sizeof p->shown));
}

static hotfn_json *create_function_module(hfn_page *p, uint32_t rank)
{
    hotfn_record_function f;
    hfn_view_function(p->view, p->order[rank], &f);
    return hotfn_json_create_number(f.module);
}

static int64_t get_rva(const hfn_page *p, uint32_t rank)
{
    hotfn_record_function f;
    hfn_view_function(p->view, p->order[rank], &f);
    return (int64_t)f.rva;
}

/* The difference to the function before is short where functions are in the record's order. */
static hotfn_json *create_rva(hfn_page *p, uint32_t rank)
{
    int64_t previous = rank > 0 ? get_rva(p, rank - 1) : 0;
    return hotfn_json_create_signed(get_rva(p, rank) - previous);
}

static hotfn_json *create_calls(hfn_page *p, uint32_t rank)
{
    hotfn_record_function f;
    hfn_view_function(p->view, p->order[rank], &f);
    return create_optional(f.counted, f.calls);
}

/* "file:line" where the function begins, if it is known. */
static hotfn_json *create_line(hfn_page *p, uint32_t rank)
{
    hotfn_record_function f;
    hotfn_record_module m;
    char file[4096];
    uint32_t line;
    hfn_view_function(p->view, p->order[rank], &f);
    hfn_view_module(p->view, f.module, &m);
    if (!hfn_view_line(p->view, &f, &m, file, sizeof file, &line)) {
        return hotfn_json_create_text(NULL);
    }
    snprintf(p->shown, sizeof p->shown, "%s:%" PRIu32, file, line);
    return hotfn_json_create_text(p->shown);
}

/* The reason why a function was not counted, not timed, or counted in part; "" if there is none. */
static hotfn_json *create_reason(hfn_page *p, uint32_t rank)
{
    hotfn_record_function f;
    hotfn_record_timing t;
    const char *reason = "";
    hfn_view_function(p->view, p->order[rank], &f);
    hfn_view_timing(p->view, p->order[rank], &t);
    if (!f.counted) {
        reason = f.reason[0] ? f.reason : hfn_state_name(f.state);
    } else if (hfn_view_is_lower_bound(p->view, p->order[rank])) {
        reason = "unhooked for a while to keep the budget: the count is a lower bound";
    } else if (p->view->time.flags && t.timing == HOTFN_TIMING_COUNT_ONLY) {
        reason = t.reason_text[0] ? t.reason_text : t.reason;
    } else if (hfn_is_found_by_code(&f)) {
        reason = HOTFN_VERDICT_FOUND_BY(f.flags) == HOTFN_FOUND_BY_CALL
                     ? "found by a call: the program has no symbol for it"
                     : "found by a pointer: the program has no symbol for it";
    }
    return hotfn_json_create_text(reason);
}

#define TIME_COLUMN(name, field)                                                                   \
    static hotfn_json *create_##name(hfn_page *p, uint32_t rank)                                   \
    {                                                                                              \
        hotfn_record_timing t;                                                                     \
        hfn_view_timing(p->view, p->order[rank], &t);                                              \
        return create_optional(t.timed_calls > 0, t.field);                                        \
    }
TIME_COLUMN(total, total_ns)
TIME_COLUMN(self, self_ns)
TIME_COLUMN(max, max_ns)
TIME_COLUMN(total_error, total_error_ns)
TIME_COLUMN(self_error, self_error_ns)
TIME_COLUMN(waited, total_waited_ns)
TIME_COLUMN(open, open_calls)

/* A percentile that is only known to be below a time is the negative of that time. */
#define PERCENTILE_COLUMN(name, below_bit)                                                         \
    static hotfn_json *create_##name(hfn_page *p, uint32_t rank)                                   \
    {                                                                                              \
        hotfn_record_timing t;                                                                     \
        hfn_view_timing(p->view, p->order[rank], &t);                                              \
        return t.timed_calls > 0 && t.below & (below_bit)                                          \
                   ? hotfn_json_create_signed(-(int64_t)t.name##_ns)                               \
                   : create_optional(t.timed_calls > 0, t.name##_ns);                              \
    }
PERCENTILE_COLUMN(p50, HOTFN_BELOW_P50)
PERCENTILE_COLUMN(p90, HOTFN_BELOW_P90)
PERCENTILE_COLUMN(p99, HOTFN_BELOW_P99)

static hotfn_json *create_timing(hfn_page *p, uint32_t rank)
{
    hotfn_record_timing t;
    hfn_view_timing(p->view, p->order[rank], &t);
    return hotfn_json_create_number(t.timing);
}

static hotfn_json *create_alloc(hfn_page *p, uint32_t rank)
{
    hotfn_json *list = hotfn_json_create_array();
    hotfn_record_timing t;
    hfn_view_timing(p->view, p->order[rank], &t);
    hfn_add_number(list, NULL, t.total_alloc.allocated_bytes);
    hfn_add_number(list, NULL, t.total_alloc.allocated_blocks);
    hfn_add_number(list, NULL, t.total_alloc.freed_bytes);
    hfn_add_number(list, NULL, t.total_alloc.freed_blocks);
    hfn_add_number(list, NULL, t.self_alloc.allocated_bytes);
    hfn_add_number(list, NULL, t.self_alloc.allocated_blocks);
    return list;
}

typedef enum column_extent { OF_ALL, OF_CALLED, OF_TIMED } column_extent;

/* A column has all functions, or ends at the last function that was called or timed. */
static const struct {
    const char *key;
    hfn_page_create_fn create;
    uint32_t needs; /* HOTFN_TIMING_* */
    column_extent extent;
} columns[] = {
    { "name", create_name, 0, OF_ALL },
    { "module", create_function_module, 0, OF_ALL },
    { "rva", create_rva, 0, OF_ALL },
    { "calls", create_calls, 0, OF_ALL },
    { "why", create_reason, 0, OF_ALL },
    { "line", create_line, 0, OF_CALLED },
    { "timing", create_timing, UINT32_MAX, OF_ALL },
    { "total", create_total, UINT32_MAX, OF_TIMED },
    { "self", create_self, UINT32_MAX, OF_TIMED },
    { "total_error", create_total_error, UINT32_MAX, OF_TIMED },
    { "self_error", create_self_error, UINT32_MAX, OF_TIMED },
    { "max", create_max, UINT32_MAX, OF_TIMED },
    { "p50", create_p50, UINT32_MAX, OF_TIMED },
    { "p90", create_p90, UINT32_MAX, OF_TIMED },
    { "p99", create_p99, UINT32_MAX, OF_TIMED },
    { "waited", create_waited, UINT32_MAX, OF_TIMED },
    { "open", create_open, UINT32_MAX, OF_TIMED },
    { "alloc", create_alloc, HOTFN_TIMING_ALLOC, OF_TIMED },
};

void hfn_page_write_functions(hfn_page *p, uint32_t begin, uint32_t end)
{
    const uint32_t ends[] = { [OF_ALL] = end,
                              [OF_CALLED] = end < p->called_count ? end : p->called_count,
                              [OF_TIMED] = end < p->timed_end ? end : p->timed_end };
    hotfn_json_begin_object(p->out, "functions");
    for (size_t i = 0; i < HFN_COUNT_OF(columns); i++) {
        if (!columns[i].needs || columns[i].needs & p->view->time.flags) {
            hfn_page_write_column(p, columns[i].key, begin, ends[columns[i].extent],
                                  columns[i].create);
        }
    }
    hotfn_json_end(p->out);
}

/* ---- Histograms. */

void hfn_page_write_histograms(hfn_page *p)
{
    hotfn_json_begin_object(p->out, "histograms");
    for (uint32_t rank = 0; p->view->time.flags && rank < p->timed_end; rank++) {
        hotfn_record_timing t;
        char key[16];
        hfn_view_timing(p->view, p->order[rank], &t);
        if (t.timed_calls == 0) {
            continue;
        }
        hotfn_record_get_histogram(p->view->record, p->order[rank], p->buckets);
        hotfn_json *list = hotfn_json_create_array();
        for (uint32_t k = 0; k < HOTFN_HISTOGRAM_BUCKETS; k++) {
            if (p->buckets[k] > 0) {
                hfn_add_number(list, NULL, k);
                hfn_add_number(list, NULL, p->buckets[k]);
            }
        }
        snprintf(key, sizeof key, "%" PRIu32, rank);
        hotfn_json_write(p->out, key, list);
    }
    hotfn_json_end(p->out);
}
