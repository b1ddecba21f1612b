/* SPDX-License-Identifier: MIT */
/* The sink, the getters of a view, and the names of states. */
#include "exporters/exporter.h"

#include "base/byte_order.h"
#include "records/reader.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void hfn_sink_flush(hfn_sink *sink)
{
    if (!sink->failed && sink->used > 0) {
        sink->failed = sink->write(sink->user, sink->buffer, sink->used) != 0;
    }
    sink->used = 0;
}

void hfn_sink_bytes(hfn_sink *sink, const char *bytes, size_t count)
{
    while (count > 0) {
        size_t room = sizeof sink->buffer - sink->used;
        size_t take = count < room ? count : room;
        memcpy(sink->buffer + sink->used, bytes, take);
        sink->used += take;
        bytes += take;
        count -= take;
        if (sink->used == sizeof sink->buffer) {
            hfn_sink_flush(sink);
        }
    }
}

void hfn_sink_le(hfn_sink *sink, uint64_t value, uint32_t byte_count)
{
    char bytes[8];

    hfn_write_le64(bytes, value);
    hfn_sink_bytes(sink, bytes, byte_count);
}

void hfn_sink_text(hfn_sink *sink, const char *text)
{
    hfn_sink_bytes(sink, text, strlen(text));
}

/* For numbers and fixed text of at most 511 bytes; names are written by hfn_sink_text. */
void hfn_sink_format(hfn_sink *sink, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    int n = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (n > 0) {
        hfn_sink_bytes(sink, text, (size_t)n < sizeof text ? (size_t)n : sizeof text - 1);
    }
}

/* ---- Progress. */

void hfn_view_reach(const hfn_view *view, uint64_t done, uint64_t total)
{
    if (done == 0) {
        *view->progress = hfn_progress_begin(&view->env, "exporting", view->info.path, total);
    }
    hfn_progress_reach(view->progress, done);
}

/* ---- Names. */

const char *hfn_view_display(const hfn_view *view, const hotfn_record_function *f, char *out,
                             size_t out_bytes)
{
    if (f->name[0] && (view->options.flags & HOTFN_EXPORT_MANGLED)) {
        return f->name;
    }
    return hfn_record_display_name(view->record, &view->env, f, out, out_bytes);
}

bool hfn_view_line(const hfn_view *view, const hotfn_record_function *f,
                   const hotfn_record_module *m, char *file, size_t file_bytes, uint32_t *line)
{
    return view->env.line_fn && !(view->options.flags & HOTFN_EXPORT_NO_LINES) &&
           view->env.line_fn(view->env.line_user, m->path, m->id, m->id_bytes, f->rva, file,
                             file_bytes, line) == 1;
}

bool hfn_view_matches(const hfn_view *view, uint32_t function)
{
    return !view->matches || view->matches[function];
}

void hfn_view_function(const hfn_view *view, uint32_t index, hotfn_record_function *out)
{
    *out = (hotfn_record_function)HOTFN_RECORD_FUNCTION_INIT;
    hotfn_record_get_function(view->record, index, out);
}

void hfn_view_module(const hfn_view *view, uint32_t index, hotfn_record_module *out)
{
    *out = (hotfn_record_module)HOTFN_RECORD_MODULE_INIT;
    hotfn_record_get_module(view->record, index, out);
}

void hfn_view_timing(const hfn_view *view, uint32_t index, hotfn_record_timing *out)
{
    *out = (hotfn_record_timing)HOTFN_RECORD_TIMING_INIT;
    hotfn_record_get_timing(view->record, index, out);
}

void hfn_view_thread(const hfn_view *view, uint32_t index, hotfn_record_thread *out)
{
    *out = (hotfn_record_thread)HOTFN_RECORD_THREAD_INIT;
    hotfn_record_get_thread(view->record, index, out);
}

void hfn_view_node(const hfn_view *view, uint32_t index, hotfn_record_node *out)
{
    *out = (hotfn_record_node)HOTFN_RECORD_NODE_INIT;
    hotfn_record_get_node(view->record, index, out);
}

void hfn_view_edge(const hfn_view *view, uint32_t index, hotfn_record_edge *out)
{
    *out = (hotfn_record_edge)HOTFN_RECORD_EDGE_INIT;
    hotfn_record_get_edge(view->record, index, out);
}

uint64_t hfn_view_weight(const hfn_view *view, const hotfn_record_node *n)
{
    return view->options.by == HOTFN_BY_ALLOC   ? n->self_alloc.allocated_bytes
           : view->options.by == HOTFN_BY_CALLS ? n->calls
                                                : n->self_ns;
}

uint32_t hfn_view_stack(const hfn_view *view, uint32_t node, uint32_t *functions,
                        uint32_t max_depth)
{
    hotfn_record_node n;
    uint32_t depth = 0;

    for (uint32_t at = node; at != HOTFN_NO_NODE && depth < max_depth; at = n.parent) {
        hfn_view_node(view, at, &n);
        functions[depth++] = n.function;
    }
    for (uint32_t i = 0; i < depth / 2; i++) {
        uint32_t swap = functions[i];

        functions[i] = functions[depth - 1 - i];
        functions[depth - 1 - i] = swap;
    }
    return depth;
}

void hfn_view_node_ranges(const hfn_view *view, uint32_t *first, uint32_t *end)
{
    hotfn_record_node n;

    for (uint32_t i = 0; i < view->info.thread_count; i++) {
        first[i] = end[i] = 0;
    }
    for (uint32_t i = 0; i < view->time.node_count; i++) {
        hfn_view_node(view, i, &n);
        if (n.thread >= view->info.thread_count) {
            continue;
        }
        first[n.thread] = end[n.thread] ? first[n.thread] : i;
        end[n.thread] = i + 1;
    }
}

const char *hfn_view_thread_name(const hfn_view *view, uint32_t thread, char *out, size_t out_bytes)
{
    hotfn_record_thread t;

    hfn_view_thread(view, thread, &t);
    if (t.tid == 0) {
        snprintf(out, out_bytes, "(tid unknown)");
    } else {
        snprintf(out, out_bytes, "%.16s%s(tid %u)", t.name, t.name[0] ? " " : "", t.tid);
    }
    return out;
}

/* ---- Words. */

const char *hfn_clock_name(uint32_t clock)
{
    switch (clock) {
    case HOTFN_CLOCK_TSC: return "tsc";
    case HOTFN_CLOCK_ARM: return "cntvct";
    case HOTFN_CLOCK_MERGED: return "merged";
    case HOTFN_CLOCK_TICK: return "tick";
    default: return "monotonic";
    }
}

const char *hfn_timing_name(uint32_t timing)
{
    return timing == HOTFN_TIMING_FULL     ? "full"
           : timing == HOTFN_TIMING_SAMPLE ? "sampled"
                                           : "count-only";
}

const char *hfn_found_by_name(uint32_t flags)
{
    static const char *const names[] = { NULL, "symbol", "unwind-data", "call", "pointer" };
    uint32_t found_by = HOTFN_VERDICT_FOUND_BY(flags);

    return found_by < HFN_COUNT_OF(names) ? names[found_by] : NULL;
}

bool hfn_is_found_by_code(const hotfn_record_function *f)
{
    return HOTFN_VERDICT_FOUND_BY(f->flags) == HOTFN_FOUND_BY_CALL ||
           HOTFN_VERDICT_FOUND_BY(f->flags) == HOTFN_FOUND_BY_POINTER;
}

const char *hfn_state_name(uint32_t state)
{
    switch (state) {
    case HOTFN_STATE_HOOKED: return "hooked";
    case HOTFN_STATE_FRAGMENT: return "fragment";
    case HOTFN_STATE_EXCLUDED: return "excluded";
    default: return "refused"; /* WAITING too: its module was never loaded */
    }
}

uint64_t hfn_view_self_ns(const hfn_view *view)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < view->info.function_count; i++) {
        hotfn_record_timing t;
        hfn_view_timing(view, i, &t);
        sum += t.timed_calls > 0 ? t.self_ns : 0;
    }
    return sum;
}

/* Times are then small differences of large numbers. */
const char *hfn_view_cost_note(const hfn_view *view, char out[200])
{
    double cost_ns = view->time.cost_inside_ns + view->time.cost_outside_ns, calls = 0;
    for (uint32_t i = 0; i < view->info.function_count; i++) {
        hotfn_record_timing t;
        hfn_view_timing(view, i, &t);
        calls += (double)t.timed_calls;
    }
    if (view->time.flags & HOTFN_TIMING_SAMPLED || view->time.ticker != HOTFN_TICKER_NONE ||
        calls * cost_ns <= (double)hfn_view_self_ns(view)) {
        return "";
    }
    snprintf(
        out, 200,
        "the hooks cost %.3g s, more than all self times: an error of 1 ns in the cost of a call "
        "changes them by %.3g ms; --sample is more accurate for such short calls",
        calls * cost_ns / 1e9, calls / 1e6);
    return out;
}

double hfn_view_coverage(const hfn_view *view)
{
    uint64_t code = 0, known = 0;
    for (uint32_t i = 0; i < view->info.module_count; i++) {
        hotfn_record_module m;
        hfn_view_module(view, i, &m);
        if (m.function_count > 0) {
            code += m.code_bytes;
            known += m.known_bytes;
        }
    }
    return code > 0 ? 100.0 * (double)known / (double)code : -1;
}
