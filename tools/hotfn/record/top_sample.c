/* SPDX-License-Identifier: MIT */
/* Samples a record: its current counts, and the rates since the sample before.  Each sample opens
 * the record again, because an open record is a copy that does not change. */
#include "top.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define RECORD_LINK "/memfd:hotfn-record"

/* ---- Finding the record of a process: `hotfn run`, which is the process itself or one of its
 * ancestors, has it open. */

static bool find_among_files(uint32_t pid, char *path, size_t bytes)
{
    char folder[64], link[512], file[sizeof folder + 300];
    bool found = false;
    snprintf(folder, sizeof folder, "/proc/%" PRIu32 "/fd", pid);
    DIR *files = opendir(folder);
    for (struct dirent *entry; !found && files && (entry = readdir(files));) {
        snprintf(file, sizeof file, "%s/%s", folder, entry->d_name);
        ssize_t n = readlink(file, link, sizeof link - 1);
        link[n > 0 ? n : 0] = 0;
        size_t length = strlen(link);
        found = strncmp(link, RECORD_LINK, strlen(RECORD_LINK)) == 0 ||
                (length > 4 && strcmp(link + length - 4, ".hfr") == 0);
        snprintf(path, bytes, "%s", file);
    }
    if (files) {
        closedir(files);
    }
    return found;
}

static uint32_t get_parent(uint32_t pid)
{
    char path[64], line[256];
    uint32_t parent = 0;
    snprintf(path, sizeof path, "/proc/%" PRIu32 "/status", pid);
    FILE *status = fopen(path, "re");
    while (status && fgets(line, sizeof line, status)) {
        if (sscanf(line, "PPid: %" SCNu32, &parent) == 1) {
            break;
        }
    }
    if (status) {
        fclose(status);
    }
    return parent;
}

bool top_find_record(const char *what, char *path, size_t bytes)
{
    char *end;
    unsigned long pid = strtoul(what, &end, 10);
    if (*end != 0 || end == what || access(what, F_OK) == 0) {
        snprintf(path, bytes, "%s", what);
        return true;
    }
    for (uint32_t at = (uint32_t)pid, steps = 0; at > 1 && steps < 64; steps++) {
        if (find_among_files(at, path, bytes)) {
            return true;
        }
        at = get_parent(at);
    }
    fprintf(stderr,
            "hotfn top: no record of process %lu can be read: start the process with hotfn run, or "
            "name the record\n",
            pid);
    return false;
}

/* ---- A sample. */

static uint64_t get_clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

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
    struct timespec now;
    uint64_t end = s->info.end_ns;
    if (before) {
        return (double)(s->at_ns - before->at_ns) / 1e9;
    }
    if (end == 0) {
        clock_gettime(CLOCK_REALTIME, &now);
        end = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
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
    out->at_ns = get_clock_ns();
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
                      .watched = hotfn_record_get_budget_state(s->record, i),
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
