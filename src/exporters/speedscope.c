/* SPDX-License-Identifier: MIT */
/* speedscope's own file format (speedscope.app/file-format-schema.json): a "sampled" profile a thread,
 * whose samples are the call tree's stacks, weighed by their own nanoseconds, or by the order asked for
 * by bytes or calls. */
#include "exporters/exporter.h"

#include <inttypes.h>

#define MOST_DEPTH 4096u

/* A frame a function; functions are frames in the record's order. */
static void put_frames(const hfn_view *view, hfn_sink *sink)
{
    char shown[8192];
    hotfn_record_function f;
    hotfn_record_module m;
    hfn_sink_text(sink, "\"shared\":{\"frames\":[");
    for (uint32_t i = 0; i < view->info.function_count && !sink->failed; i++) {
        hfn_view_function(view, i, &f);
        hfn_view_module(view, f.module, &m);
        hfn_sink_text(sink, i ? ",\n{\"name\":" : "\n{\"name\":");
        hfn_sink_json(sink, hfn_view_display(view, &f, shown, sizeof shown));
        hfn_sink_json_key(sink, "file", m.file);
        hfn_sink_text(sink, "}");
    }
    hfn_sink_text(sink, "]}");
}

/* Working room: a stack, and where each thread's nodes lie. */
typedef struct room {
    uint32_t stack[MOST_DEPTH];
    uint32_t *first, *end;
} room;

static uint64_t put_samples(const hfn_view *view, hfn_sink *sink, uint32_t thread, room *r)
{
    const char *separator = "\n[";
    hotfn_record_node n;
    uint64_t sum = 0;
    for (uint32_t i = r->first[thread]; i < r->end[thread] && !sink->failed; i++) {
        hfn_view_node(view, i, &n);
        if (n.thread != thread || hfn_view_weight(view, &n) == 0) {
            continue;
        }
        uint32_t depth = hfn_view_stack(view, i, r->stack, MOST_DEPTH);
        hfn_sink_text(sink, separator);
        for (uint32_t k = 0; k < depth; k++) {
            hfn_sink_format(sink, k ? ",%" PRIu32 : "%" PRIu32, r->stack[k]);
        }
        hfn_sink_text(sink, "]");
        separator = ",\n[";
        sum += hfn_view_weight(view, &n);
    }
    return sum;
}

static void put_weights(const hfn_view *view, hfn_sink *sink, uint32_t thread, const room *r)
{
    const char *format = "%" PRIu64;
    hotfn_record_node n;
    for (uint32_t i = r->first[thread]; i < r->end[thread] && !sink->failed; i++) {
        hfn_view_node(view, i, &n);
        if (n.thread == thread && hfn_view_weight(view, &n) > 0) {
            hfn_sink_format(sink, format, hfn_view_weight(view, &n));
            format = ",%" PRIu64;
        }
    }
}

static void put_profile(const hfn_view *view, hfn_sink *sink, uint32_t thread, room *r)
{
    char name[64];
    hfn_sink_text(sink, "{\"type\":\"sampled\"");
    hfn_sink_json_key(sink, "name", hfn_view_thread_name(view, thread, name, sizeof name));
    hfn_sink_format(sink, ",\"unit\":\"%s\",\"startValue\":0,\"samples\":[",
                    view->options.by == HOTFN_BY_ALLOC   ? "bytes"
                    : view->options.by == HOTFN_BY_CALLS ? "none"
                                                         : "nanoseconds");
    uint64_t sum = put_samples(view, sink, thread, r);
    hfn_sink_text(sink, "],\"weights\":[");
    put_weights(view, sink, thread, r);
    hfn_sink_format(sink, "],\"endValue\":%" PRIu64 "}", sum);
}

static bool write_speedscope(const hfn_view *view, hfn_sink *sink)
{
    size_t range_bytes = 2 * (size_t)view->info.thread_count * sizeof(uint32_t);
    room *r = hfn_alloc(&view->env, sizeof *r);
    uint32_t *ranges = hfn_alloc(&view->env, range_bytes);
    if (!r || !ranges) {
        hfn_free(&view->env, r, sizeof *r);
        hfn_free(&view->env, ranges, range_bytes);
        return false;
    }
    r->first = ranges;
    r->end = ranges + view->info.thread_count;
    hfn_view_node_ranges(view, r->first, r->end);
    hfn_sink_text(sink, "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\"");
    hfn_sink_json_key(sink, "name", view->info.command);
    hfn_sink_text(sink, ",\"exporter\":\"hotfn\",\"activeProfileIndex\":0,\n");
    put_frames(view, sink);
    hfn_sink_text(sink, ",\n\"profiles\":[");
    for (uint32_t i = 0; i < view->info.thread_count; i++) {
        hfn_sink_text(sink, i ? ",\n" : "\n");
        put_profile(view, sink, i, r);
    }
    hfn_sink_text(sink, "]}\n");
    hfn_free(&view->env, r, sizeof *r);
    hfn_free(&view->env, ranges, range_bytes);
    return true;
}

const hfn_exporter hfn_exporter_speedscope = {
    .name = "speedscope",
    .extension = ".speedscope.json",
    .about = "speedscope.app: stacks of each thread",
    .needs = HOTFN_NEEDS_TIMES | HOTFN_NEEDS_TREE,
    .write = write_speedscope,
};
