/* SPDX-License-Identifier: MIT */
/* Opens any bytes as a record, makes every query if it opens, and repairs it.  If bit 0 of the
 * first byte is set, the checksums are corrected first, so that the checks after them are
 * reached. */
#include "records_sums.h"

#include <fcntl.h>
#include <hotfn/lowlevel/timing.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MAX_INPUT = 1 << 20 };

/* Touch every byte of a text. */
static size_t read_text(const char *text)
{
    volatile size_t length = text ? strlen(text) : (abort(), 0);
    return length;
}

static void query_functions(const hotfn_record *record, uint32_t count, uint32_t modules)
{
    for (uint32_t i = 0; i < count; i++) {
        hotfn_record_function f = HOTFN_RECORD_FUNCTION_INIT;
        const char *name;

        if (hotfn_record_get_function(record, i, &f) != HOTFN_OK || f.module >= modules) {
            abort();
        }
        read_text(f.name), read_text(f.strategy), read_text(f.reason), read_text(f.reason_text);
        for (name = f.names; name[0]; name += strlen(name) + 1) {
            read_text(name);
        }
    }
}

static void query_tree(const hotfn_record *record, const hotfn_record_info *run,
                       const hotfn_record_time_info *time)
{
    for (uint32_t i = 0; i < time->node_count; i++) {
        hotfn_record_node n = HOTFN_RECORD_NODE_INIT;

        if (hotfn_record_get_node(record, i, &n) != HOTFN_OK ||
            (n.parent != HOTFN_NO_NODE && n.parent >= i) || n.thread >= run->thread_count ||
            (n.function != HOTFN_NO_FUNCTION && n.function >= run->function_count)) {
            abort();
        }
    }
    for (uint32_t i = 0; i < time->edge_count; i++) {
        hotfn_record_edge e = HOTFN_RECORD_EDGE_INIT;

        if (hotfn_record_get_edge(record, i, &e) != HOTFN_OK ||
            (e.callee != HOTFN_NO_FUNCTION && e.callee >= run->function_count)) {
            abort();
        }
    }
    for (uint32_t i = 0; i < time->slow_count; i++) {
        hotfn_record_slow_call s = HOTFN_RECORD_SLOW_CALL_INIT;

        if (hotfn_record_get_slow_call(record, i, &s) != HOTFN_OK ||
            s.thread >= run->thread_count ||
            (s.node != HOTFN_NO_NODE && s.node >= time->node_count)) {
            abort();
        }
    }
    for (uint64_t i = 0; i < time->event_count; i++) {
        hotfn_record_event e = HOTFN_RECORD_EVENT_INIT;

        if (hotfn_record_get_event(record, i, &e) != HOTFN_OK || e.thread >= run->thread_count) {
            abort();
        }
    }
}

static void query_budget(const hotfn_record *record, const hotfn_record_info *run)
{
    hotfn_record_budget budget = HOTFN_RECORD_BUDGET_INIT;
    hotfn_record_change change = HOTFN_RECORD_CHANGE_INIT;

    if (hotfn_record_get_budget(record, &budget) != HOTFN_OK) {
        abort();
    }
    read_text(budget.note);
    for (uint32_t i = 0; i < budget.change_count; i++) {
        if (hotfn_record_get_change(record, i, &change) != HOTFN_OK ||
            (change.function != HOTFN_NO_FUNCTION && change.function >= run->function_count)) {
            abort();
        }
    }
    if (hotfn_record_get_change(record, budget.change_count, &change) != HOTFN_E_NOT_FOUND) {
        abort();
    }
    for (uint32_t i = 0; i <= run->function_count; i++) {
        (void)hotfn_record_get_budget_state(record, i);
    }
}

static void query_times(const hotfn_record *record, const hotfn_record_info *run)
{
    hotfn_record_time_info time = HOTFN_RECORD_TIME_INFO_INIT;
    uint64_t *counts = calloc(HOTFN_HISTOGRAM_BUCKETS, sizeof *counts);

    if (!counts || hotfn_record_get_time_info(record, &time) != HOTFN_OK) {
        abort();
    }
    for (uint32_t i = 0; i < run->function_count; i++) {
        hotfn_record_timing t = HOTFN_RECORD_TIMING_INIT;

        if (hotfn_record_get_timing(record, i, &t) != HOTFN_OK || t.self_ns > t.total_ns ||
            hotfn_record_get_histogram(record, i, counts) != HOTFN_OK) {
            abort();
        }
        read_text(t.reason), read_text(t.reason_text);
    }
    query_tree(record, run, &time);
    free(counts);
}

static void query_names_and_callers(const hotfn_record *record, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        hotfn_record_caller caller = HOTFN_RECORD_CALLER_INIT;
        uint32_t callers = hotfn_record_get_caller_count(record, i);
        char name[64];

        if (hotfn_record_get_display_name(record, i, name, sizeof name) == HOTFN_E_NOT_FOUND) {
            abort();
        }
        for (uint32_t k = 0; k < callers; k++) {
            if (hotfn_record_get_caller(record, i, k, &caller) != HOTFN_OK ||
                (caller.function != HOTFN_NO_FUNCTION && caller.function >= count)) {
                abort();
            }
        }
    }
}

static void query_threads(const hotfn_record *record, const hotfn_record_info *run)
{
    for (uint32_t thread = 0; thread < run->thread_count; thread++) {
        hotfn_record_thread_timing out[8];
        uint32_t count = 0;

        if (hotfn_record_get_thread_timings(record, thread, out, sizeof out[0], 8, &count) !=
                HOTFN_OK ||
            count > run->function_count) {
            abort();
        }
        for (uint32_t i = 0; i < count && i < 8; i++) {
            if (out[i].function >= run->function_count || out[i].calls == 0) {
                abort();
            }
        }
    }
}

/* Every name is written once, in pieces. */
static void query_all_names(const hotfn_record *record, uint32_t kind, uint32_t count)
{
    const size_t text_bytes = 4 << 20;
    char *text = malloc(text_bytes);

    for (uint32_t first = 0; text && first < count;) {
        uint32_t written = count - first;
        uint64_t bytes = text_bytes;
        const char *at = text;

        if (hotfn_record_get_names(record, kind, first, &written, text, &bytes) != HOTFN_OK) {
            abort();
        }
        for (uint32_t i = 0; i < written; i++) {
            at += strlen(at) + 1;
        }
        if (written == 0 || at != text + bytes) {
            abort();
        }
        first += written;
    }
    free(text);
}

static void query_look_ups(const hotfn_record *record, uint32_t count)
{
    hotfn_record_function f = HOTFN_RECORD_FUNCTION_INIT;
    uint32_t found;

    if (hotfn_record_get_function(record, count / 2, &f) != HOTFN_OK) {
        return;
    }
    if (hotfn_record_find_function(record, f.name, &found, NULL) == HOTFN_OK && found >= count) {
        abort();
    }
    if (hotfn_record_find_function_at(record, f.module, f.rva, &found) != HOTFN_OK ||
        found >= count) {
        abort();
    }
}

static void query_everything(hotfn_record *record)
{
    hotfn_record_info info = HOTFN_RECORD_INFO_INIT;
    uint32_t *order;

    hotfn_record_get_info(record, &info);
    read_text(info.command), read_text(info.directory), read_text(info.tool), read_text(info.path);
    for (uint32_t i = 0; i < info.module_count; i++) {
        hotfn_record_module m = HOTFN_RECORD_MODULE_INIT;

        if (hotfn_record_get_module(record, i, &m) != HOTFN_OK || m.id_bytes > sizeof m.id) {
            abort();
        }
        read_text(m.path), read_text(m.file), read_text(m.note);
    }
    query_functions(record, info.function_count, info.module_count);
    query_names_and_callers(record, info.function_count);
    query_look_ups(record, info.function_count);
    query_times(record, &info);
    query_budget(record, &info);
    query_threads(record, &info);
    for (uint32_t kind = 0; kind <= HOTFN_NAMES_READABLE; kind++) {
        /* many functions may share one long name */
        query_all_names(record, kind, info.function_count < 64 ? info.function_count : 64);
    }
    for (uint32_t i = 0; i < info.thread_count; i++) {
        hotfn_record_thread t = HOTFN_RECORD_THREAD_INIT;

        hotfn_record_get_thread(record, i, &t);
        hotfn_record_choose_process(record, t.pid);
    }
    order = calloc(info.function_count + 1u, sizeof *order);
    if (!order ||
        hotfn_record_sort(record, HOTFN_BY_CALLS, order, info.function_count) != HOTFN_OK) {
        abort();
    }
    free(order);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    hotfn_record *record = NULL;
    hotfn_error err = HOTFN_ERROR_INIT;
    char path[64], lost[128];
    uint8_t *copy;
    int fd;

    if (size < 1 || size > MAX_INPUT) {
        return 0;
    }
    copy = malloc(size);
    memcpy(copy, data, size);
    if (copy[0] & 1) {
        make_sums_right(copy + 1, size - 1);
    }
    fd = memfd_create("fuzz", MFD_CLOEXEC);
    if (fd < 0 || write(fd, copy + 1, size - 1) != (ssize_t)(size - 1)) {
        abort();
    }
    free(copy);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (hotfn_record_open(&record, path, NULL, &err) == HOTFN_OK) {
        query_everything(record);
    } else if (!err.text[0]) {
        abort();
    }
    hotfn_record_close(record);
    hotfn_record_repair(path, "/dev/null", lost, sizeof lost, NULL, &err);
    close(fd);
    return 0;
}
