/* SPDX-License-Identifier: MIT */
/* Samples a record: its current counts, and the rates since the sample before.  Each sample opens
 * the record again, because an open record is a copy that does not change. */
#include "top.h"

#include "cli/cli_options.h"
#include "run/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Without a path or .hfr, `what` may be the name of a process whose program lies in this folder, so
 * the file must be a record. */
static bool is_record(const char *what)
{
    hotfn_record *record = NULL;
    bool is_path = strpbrk(what, "/\\") || strstr(what, ".hfr");

    if (!is_path && access(what, F_OK) == 0) {
        is_path = hotfn_record_open(&record, what, NULL, NULL) == HOTFN_OK;
        hotfn_record_close(record);
    }
    return is_path;
}

bool top_find_record(const char *what, char *path, size_t bytes)
{
    hotfn_error err = HOTFN_ERROR_INIT;
    uint32_t pid = 0;

    if (is_record(what)) {
        snprintf(path, bytes, "%s", what);
        return true;
    }
    if (!cli_parse_u32(what, 1, INT32_MAX, &pid) && !run_find_process("top", what, &pid)) {
        return false;
    }
    if (hotfn_launch_find_record(path, bytes, pid, &err) != HOTFN_OK) {
        hotfn_tool_fail("top", &err);
        return false;
    }
    return true;
}

/* ---- A sample. */

static bool fill_counts(top_sample *s)
{
    s->calls = calloc(s->info.function_count + 1u, sizeof *s->calls);
    s->self = calloc(s->info.function_count + 1u, sizeof *s->self);
    s->thread_calls = calloc(s->info.thread_count + 1u, sizeof *s->thread_calls);
    s->thread_busy = calloc(s->info.thread_count + 1u, sizeof *s->thread_busy);
    if (!s->calls || !s->self || !s->thread_calls || !s->thread_busy) {
        return false;
    }
    for (uint32_t i = 0; i < s->info.function_count; i++) {
        hotfn_record_function f = HOTFN_RECORD_FUNCTION_INIT;
        hotfn_record_timing t = HOTFN_RECORD_TIMING_INIT;
        hotfn_record_get_function(s->record, i, &f);
        s->calls[i] = f.calls;
        if (s->timed && f.calls > 0) {
            hotfn_record_get_timing(s->record, i, &t);
            s->self[i] = t.self_ns;
        }
    }
    for (uint32_t i = 0; i < s->info.thread_count; i++) {
        hotfn_record_thread t = HOTFN_RECORD_THREAD_INIT;
        hotfn_record_get_thread(s->record, i, &t);
        s->thread_calls[i] = t.calls;
        s->thread_busy[i] = t.busy_ns;
    }
    return true;
}

static double get_period_s(const top_sample *s, const top_sample *before)
{
    uint64_t end = s->info.end_ns;
    if (before) {
        return (double)(s->at_ns - before->at_ns) / 1e9;
    }
    if (end == 0) {
        end = (uint64_t)time(NULL) * 1000000000u;
    }
    return end > s->info.start_ns ? (double)(end - s->info.start_ns) / 1e9 : 0;
}

bool top_take_sample(top_sample *out, const char *path, const top_sample *before)
{
    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_record_time_info time = HOTFN_RECORD_TIME_INFO_INIT;
    *out = (top_sample){ .info.size = sizeof out->info, .budget.size = sizeof out->budget };
    if (hotfn_record_open(&out->record, path, NULL, &err) != HOTFN_OK) {
        hotfn_tool_fail("top", &err);
        return false;
    }
    out->at_ns = top_read_clock();
    hotfn_record_get_info(out->record, &out->info);
    hotfn_record_get_time_info(out->record, &time);
    hotfn_record_get_budget(out->record, &out->budget);
    out->timed = time.flags != 0;
    out->times_note = time.note;
    if (!before) {
        hotfn_tool_warn_unread_times("top", path, out->record);
    }
    out->with_memory = time.flags & HOTFN_TIMING_ALLOC;
    out->seconds = get_period_s(out, before);
    if (!fill_counts(out)) {
        fputs("hotfn top: not enough memory\n", stderr);
        top_free_sample(out);
        return false;
    }
    return true;
}

void top_free_sample(top_sample *s)
{
    hotfn_record_close(s->record);
    free(s->calls);
    free(s->self);
    free(s->thread_calls);
    free(s->thread_busy);
    *s = (top_sample){ 0 };
}

/* ---- Rows. */

static double compute_rate(const top_sample *s, uint64_t now, uint64_t then)
{
    return s->seconds > 0 && now > then ? (double)(now - then) / s->seconds : 0;
}

static bool is_shown(const top_sample *s, const top_view *view, uint32_t function)
{
    char shown[8192];
    hotfn_record_function f = HOTFN_RECORD_FUNCTION_INIT;
    if (s->calls[function] == 0) {
        return false;
    }
    if (!view->filter[0]) {
        return true;
    }
    hotfn_record_get_function(s->record, function, &f);
    return strcasestr(f.name, view->filter) ||
           (hotfn_tool_demangle(NULL, f.name, shown, sizeof shown) > 0 &&
            strcasestr(shown, view->filter));
}

static top_row make_function_row(const top_sample *s, const top_sample *before, uint32_t i)
{
    hotfn_record_timing t = HOTFN_RECORD_TIMING_INIT;
    bool known = before && i < before->info.function_count;
    if (s->timed) {
        hotfn_record_get_timing(s->record, i, &t);
    }
    return (top_row){ .index = i,
                      .calls = s->calls[i],
                      .self_ns = s->self[i],
                      .total_ns = t.total_ns,
                      .memory = t.self_alloc,
                      .budget_state = hotfn_record_get_budget_state(s->record, i),
                      .rate = compute_rate(s, s->calls[i], known ? before->calls[i] : 0),
                      .busy = compute_rate(s, s->self[i], known ? before->self[i] : 0) / 1e9 };
}

static top_row make_thread_row(const top_sample *s, const top_sample *before, uint32_t i)
{
    bool known = before && i < before->info.thread_count;
    return (top_row){
        .index = i,
        .calls = s->thread_calls[i],
        .self_ns = s->thread_busy[i],
        .total_ns = s->thread_busy[i],
        .rate = compute_rate(s, s->thread_calls[i], known ? before->thread_calls[i] : 0),
        .busy = compute_rate(s, s->thread_busy[i], known ? before->thread_busy[i] : 0) / 1e9
    };
}

static int compare_by_rate(const void *left, const void *right)
{
    const top_row *a = left, *b = right;
    if (a->rate < b->rate || a->rate > b->rate) {
        return a->rate < b->rate ? 1 : -1;
    }
    return a->calls != b->calls ? (a->calls < b->calls ? 1 : -1)
                                : (a->index > b->index) - (a->index < b->index);
}

#define COMPARE(name, field)                                                                       \
    static int name(const void *left, const void *right)                                           \
    {                                                                                              \
        const top_row *a = left, *b = right;                                                       \
        return a->field != b->field ? (a->field < b->field ? 1 : -1)                               \
                                    : compare_by_rate(left, right);                                \
    }
COMPARE(compare_by_calls, calls)
COMPARE(compare_by_self, self_ns)
COMPARE(compare_by_total, total_ns)
COMPARE(compare_by_alloc, memory.allocated_bytes)

const char *const top_orders[TOP_ORDERS] = { "rate", "calls", "self", "total", "alloc" };

top_row *top_sort_rows(const top_sample *s, const top_sample *before, const top_view *view,
                       uint32_t *count)
{
    static int (*const orders[TOP_ORDERS])(const void *, const void *) = {
        compare_by_rate, compare_by_calls, compare_by_self, compare_by_total, compare_by_alloc
    };
    uint32_t max_rows = view->threads ? s->info.thread_count : s->info.function_count;
    top_row *rows = calloc(max_rows + 1u, sizeof *rows);
    *count = 0;
    for (uint32_t i = 0; rows && i < max_rows; i++) {
        if (view->threads) {
            rows[(*count)++] = make_thread_row(s, before, i);
        } else if (is_shown(s, view, i)) {
            rows[(*count)++] = make_function_row(s, before, i);
        }
    }
    if (rows) {
        qsort(rows, *count, sizeof *rows, orders[view->by]);
    }
    return rows;
}
