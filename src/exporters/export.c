/* SPDX-License-Identifier: MIT */
/* From a record to a format: checks the request, makes the view and calls the exporter. */
#include "base/status.h"
#include "exporters/registry.h"
#include "functions/glob.h"
#include "functions/match.h"

#include <hotfn/lowlevel/functions.h>
#include <stdio.h>
#include <string.h>

static uint64_t sum_calls(const hfn_view *view)
{
    uint64_t total = 0;
    for (uint32_t i = 0; i < view->info.function_count; i++) {
        hotfn_record_function f;
        hfn_view_function(view, i, &f);
        if (f.counted) {
            total = f.calls > UINT64_MAX - total ? UINT64_MAX : total + f.calls;
        }
    }
    return total;
}

/* Set matches[i] for each function i that has a name which options.match matches.  False if there
 * is no memory. */
static bool match_functions(const hfn_view *view, uint8_t *matches)
{
    hfn_name_matcher matcher;
    hfn_matcher_init(&matcher, &view->env);
    for (uint32_t i = 0; i < view->info.function_count; i++) {
        hotfn_record_function f;
        hfn_view_function(view, i, &f);
        matches[i] = hfn_matcher_matches_any(&matcher, view->options.match, f.name, f.name_count);
    }
    hfn_matcher_finish(&matcher);
    return !matcher.out_of_memory;
}

/* Drop the functions that do not match from order.  Returns the number of those that remain. */
static uint32_t keep_matching(const hfn_view *view, uint32_t *order)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < view->info.function_count; i++) {
        if (hfn_view_matches(view, order[i])) {
            order[kept++] = order[i];
        }
    }
    return kept;
}

static int32_t write_to_sink(void *user, const void *bytes, size_t byte_count)
{
    hfn_sink *sink = user;
    hfn_sink_bytes(sink, bytes, byte_count);
    return sink->failed;
}

/* A status that the library does not have becomes HOTFN_E_STATE, and an error without a text gets
 * one: the exporter is foreign code. */
static hotfn_status call_registered(const hfn_view *view, const hotfn_exporter *exporter,
                                    hfn_sink *sink, hotfn_error *err)
{
    hotfn_error inner = HOTFN_ERROR_INIT;
    hotfn_status s =
        exporter->write(exporter->user, view->record, &view->options, write_to_sink, sink, &inner);
    if (s == HOTFN_OK) {
        return s;
    }
    inner.text[sizeof inner.text - 1] = 0;
    s = s <= HOTFN_E_NO_MEMORY && s >= HOTFN_E_LIMIT ? s : HOTFN_E_STATE;
    return hfn_report_error(err, s, view->info.path, HOTFN_NO_OFFSET, "exporter %s failed: %.400s",
                            exporter->name, inner.text[0] ? inner.text : hotfn_status_get_name(s));
}

static hotfn_status write_ordered(hfn_view *view, const hfn_format *format, hfn_sink *sink,
                                  hotfn_error *err)
{
    hotfn_status s;
    view->limit = view->options.limit && view->options.limit < view->count ? view->options.limit
                                                                           : view->count;
    if (format->registered) {
        s = call_registered(view, format->registered, sink, err);
    } else {
        view->total_calls = sum_calls(view);
        s = format->built_in->write(view, sink) ? HOTFN_OK : HOTFN_E_NO_MEMORY;
    }
    hfn_sink_flush(sink);
    return sink->failed ? hfn_report_error(err, HOTFN_E_IO, NULL, HOTFN_NO_OFFSET,
                                           "the output could not be written completely")
                        : s;
}

static hotfn_status write_matching(hfn_view *view, const hfn_format *format, hfn_sink *sink,
                                   uint32_t *order, hotfn_error *err)
{
    hotfn_status s =
        hotfn_record_sort(view->record, view->options.by, order, view->info.function_count);
    if (s != HOTFN_OK) {
        return s;
    }
    view->order = order;
    view->count = keep_matching(view, order);
    return view->options.match && view->count == 0
               ? hfn_report_error(err, HOTFN_E_NOT_FOUND, view->info.path, HOTFN_NO_OFFSET,
                                  "no function matches '%s'", view->options.match)
               : write_ordered(view, format, sink, err);
}

static hotfn_status write_view(hfn_view *view, const hfn_format *format, hotfn_write_fn write,
                               void *user, hotfn_error *err)
{
    hfn_progress progress = { 0 };
    size_t order_bytes = (view->info.function_count + 1u) * sizeof(uint32_t);
    uint32_t *order = hfn_allocate_zeroed(&view->env, order_bytes);
    uint8_t *matches = hfn_allocate_zeroed(&view->env, view->info.function_count);
    hfn_sink *sink = hfn_allocate_zeroed(&view->env, sizeof *sink);
    hotfn_status s = order && matches && sink ? HOTFN_OK : HOTFN_E_NO_MEMORY;
    if (s == HOTFN_OK && view->options.match) {
        view->matches = matches;
        s = match_functions(view, matches) ? HOTFN_OK : HOTFN_E_NO_MEMORY;
    }
    if (s == HOTFN_OK) {
        *sink = (hfn_sink){ .write = write, .user = user };
        view->progress = &progress;
        s = write_matching(view, format, sink, order, err);
        hfn_progress_end(&progress);
    }
    hfn_free_memory(&view->env, sink, sizeof *sink);
    hfn_free_memory(&view->env, matches, view->info.function_count);
    hfn_free_memory(&view->env, order, order_bytes);
    return s == HOTFN_E_NO_MEMORY && !format->registered
               ? hfn_report_error(err, s, NULL, HOTFN_NO_OFFSET, "not enough memory")
               : s;
}

/* ---- Checks that the record has the data that an exporter needs. */

static const struct {
    uint32_t need;
    const char *missing;
} needs[] = {
    { HOTFN_NEEDS_TIMES, "times of functions: run with --mode time" },
    { HOTFN_NEEDS_TREE, "a call tree: run with --mode time, without --flat and --sample" },
    { HOTFN_NEEDS_EVENTS, "entries and exits: run with --mode time --events" },
};

/* Report that the record has times, but they cannot be used; time.note is the reason. */
static hotfn_status report_unusable_times(const hfn_view *view, hotfn_error *err)
{
    return hfn_report_error(err, HOTFN_E_UNSUPPORTED, view->info.path, view->time.note_offset, "%s",
                            view->time.note);
}

/* Check that the record has the values of the sort key, which is also the weight of stacks. */
static hotfn_status check_order(const hfn_view *view, hotfn_error *err)
{
    uint32_t by = view->options.by;
    const char *missing = NULL;
    if (by == HOTFN_BY_ALLOC && !(view->time.flags & HOTFN_TIMING_ALLOC)) {
        missing = "allocated bytes: run with --mode time --with alloc";
    } else if (by != HOTFN_BY_DEFAULT && by != HOTFN_BY_CALLS && !view->time.flags) {
        missing = needs[0].missing;
    }
    if (missing && view->time.note[0]) {
        return report_unusable_times(view, err);
    }
    return missing ? hfn_report_error(
                         err, HOTFN_E_UNSUPPORTED, view->info.path, HOTFN_NO_OFFSET,
                         "the functions cannot be sorted by this: the record does not have %s",
                         missing)
                   : HOTFN_OK;
}

static uint32_t get_available_data(const hfn_view *view)
{
    return HOTFN_NEEDS_FLAT | (view->time.flags ? HOTFN_NEEDS_TIMES : 0) |
           (view->time.node_count ? HOTFN_NEEDS_TREE : 0) |
           (view->time.event_count ? HOTFN_NEEDS_EVENTS : 0);
}

static hotfn_status check_needs(const hfn_view *view, const hotfn_exporter_info *exporter,
                                hotfn_error *err)
{
    uint32_t lacking = exporter->needs & ~get_available_data(view);
    if (lacking && view->time.note[0]) {
        return report_unusable_times(view, err);
    }
    for (size_t i = 0; i < HFN_COUNT_OF(needs); i++) {
        if (lacking & needs[i].need) {
            return hfn_report_error(err, HOTFN_E_UNSUPPORTED, view->info.path, HOTFN_NO_OFFSET,
                                    "%s cannot be made from this record, which does not have %s",
                                    exporter->name, needs[i].missing);
        }
    }
    return HOTFN_OK;
}

#define KNOWN_FLAGS                                                                                \
    (HOTFN_EXPORT_COLOR | HOTFN_EXPORT_MANGLED | HOTFN_EXPORT_REFUSED | HOTFN_EXPORT_EDGES |       \
     HOTFN_EXPORT_NO_LINES)

hotfn_status hotfn_export(const hotfn_record *record, const char *format,
                          const hotfn_export_options *options, hotfn_write_fn write, void *user,
                          const hotfn_env *env, hotfn_error *err)
{
    if (!record || !format || !write) {
        return hfn_report_null(err, __func__);
    }

    hfn_view view = { .record = record, .env = hfn_env_fill(env) };
    hfn_format found;
    hotfn_status s = hfn_format_find(format, &found, err);
    if (s != HOTFN_OK) {
        return s;
    }
    if (!hfn_copy_options(&view.options, sizeof view.options, options) ||
        view.options.flags & ~KNOWN_FLAGS || view.options.by > HOTFN_BY_ALLOC) {
        return hfn_report_error(err, HOTFN_E_OPTION, NULL, HOTFN_NO_OFFSET,
                                "unknown export option");
    }
    s = view.options.match ? hfn_glob_check(view.options.match, err) : HOTFN_OK;
    if (s != HOTFN_OK) {
        return s;
    }
    view.info.size = sizeof view.info;
    s = hotfn_record_get_info(record, &view.info);
    if (s != HOTFN_OK) {
        return hfn_report_error(err, s, NULL, HOTFN_NO_OFFSET, "the record cannot be read");
    }
    view.time.size = sizeof view.time;
    hotfn_record_get_time_info(record, &view.time);
    s = check_needs(&view, &found.info, err);
    s = s == HOTFN_OK ? check_order(&view, err) : s;
    return s == HOTFN_OK ? write_view(&view, &found, write, user, err) : s;
}
