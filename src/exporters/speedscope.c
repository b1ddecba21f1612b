/* SPDX-License-Identifier: MIT */
/* speedscope's own file format (speedscope.app/file-format-schema.json): one "sampled" profile for
 * each thread, whose samples are the stacks of the call tree.  The weight of a stack is its self
 * time in nanoseconds, its allocated bytes or its calls, as options.by selects. */
#include "exporters/json_fields.h"

#define MAX_DEPTH 4096u

typedef struct speedscope {
    const hfn_view *view;
    hfn_sink *sink;
    hotfn_json_writer *out;
    uint32_t stack[MAX_DEPTH];
    uint32_t *first, *end; /* the range of each thread's nodes */
} speedscope;

/* Each frame of speedscope is a function; its index is that of the function in the record. */
static void write_frames(const speedscope *s)
{
    char shown[8192];
    hotfn_json_begin_object(s->out, "shared");
    hotfn_json_begin_array(s->out, "frames");
    for (uint32_t i = 0; i < s->view->info.function_count && !s->sink->failed; i++) {
        hotfn_json *o = hotfn_json_create_object();
        hotfn_record_function f;
        hotfn_record_module m;
        hfn_view_reach(s->view, i, s->view->info.function_count);
        hfn_view_function(s->view, i, &f);
        hfn_view_module(s->view, f.module, &m);
        hfn_add_text(o, "name", hfn_view_display(s->view, &f, shown, sizeof shown));
        hfn_add_text(o, "file", m.file);
        hotfn_json_write(s->out, NULL, o);
    }
    hotfn_json_end(s->out);
    hotfn_json_end(s->out);
}

static bool get_weighted_node(const speedscope *s, uint32_t thread, uint32_t index,
                              hotfn_record_node *out)
{
    hfn_view_node(s->view, index, out);
    return out->thread == thread && hfn_view_weight(s->view, out) > 0;
}

/* Write the stacks of a thread; returns the sum of their weights. */
static uint64_t write_samples(speedscope *s, uint32_t thread)
{
    hotfn_record_node n;
    uint64_t sum = 0;
    hotfn_json_begin_array(s->out, "samples");
    for (uint32_t i = s->first[thread]; i < s->end[thread] && !s->sink->failed; i++) {
        if (!get_weighted_node(s, thread, i, &n)) {
            continue;
        }
        hotfn_json *stack = hotfn_json_create_array();
        uint32_t depth = hfn_view_stack(s->view, i, s->stack, MAX_DEPTH);
        for (uint32_t k = 0; k < depth; k++) {
            hfn_add_number(stack, NULL, s->stack[k]);
        }
        hotfn_json_write(s->out, NULL, stack);
        sum += hfn_view_weight(s->view, &n);
    }
    hotfn_json_end(s->out);
    return sum;
}

static void write_weights(const speedscope *s, uint32_t thread)
{
    hotfn_record_node n;
    hotfn_json_begin_array(s->out, "weights");
    for (uint32_t i = s->first[thread]; i < s->end[thread] && !s->sink->failed; i++) {
        if (get_weighted_node(s, thread, i, &n)) {
            hotfn_json_write(s->out, NULL, hotfn_json_create_number(hfn_view_weight(s->view, &n)));
        }
    }
    hotfn_json_end(s->out);
}

static void write_profile(speedscope *s, uint32_t thread)
{
    char name[64];
    uint32_t by = s->view->options.by;
    const char *unit = by == HOTFN_BY_ALLOC   ? "bytes"
                       : by == HOTFN_BY_CALLS ? "none"
                                              : "nanoseconds";
    hotfn_json_begin_object(s->out, NULL);
    hotfn_json_write(s->out, "type", hotfn_json_create_text("sampled"));
    hotfn_json_write(
        s->out, "name",
        hotfn_json_create_text(hfn_view_thread_name(s->view, thread, name, sizeof name)));
    hotfn_json_write(s->out, "unit", hotfn_json_create_text(unit));
    hotfn_json_write(s->out, "startValue", hotfn_json_create_number(0));
    uint64_t sum = write_samples(s, thread);
    write_weights(s, thread);
    hotfn_json_write(s->out, "endValue", hotfn_json_create_number(sum));
    hotfn_json_end(s->out);
}

static void write_file(speedscope *s)
{
    hotfn_json_begin_object(s->out, NULL);
    hotfn_json_write(s->out, "$schema",
                     hotfn_json_create_text("https://www.speedscope.app/file-format-schema.json"));
    hotfn_json_write(s->out, "name", hotfn_json_create_text(s->view->info.command));
    hotfn_json_write(s->out, "exporter", hotfn_json_create_text("hotfn"));
    hotfn_json_write(s->out, "activeProfileIndex", hotfn_json_create_number(0));
    write_frames(s);
    hotfn_json_begin_array(s->out, "profiles");
    for (uint32_t i = 0; i < s->view->info.thread_count; i++) {
        write_profile(s, i);
    }
    hotfn_json_end(s->out);
    hotfn_json_end(s->out);
}

static bool write_speedscope(const hfn_view *view, hfn_sink *sink)
{
    size_t range_bytes = 2 * (size_t)view->info.thread_count * sizeof(uint32_t);
    speedscope *s = hfn_allocate_zeroed(&view->env, sizeof *s);
    uint32_t *ranges = hfn_allocate_zeroed(&view->env, range_bytes);
    hotfn_json_writer *out = hfn_json_open(sink, 0);
    bool ok = s && ranges && out;
    if (ok) {
        s->view = view;
        s->sink = sink;
        s->out = out;
        s->first = ranges;
        s->end = ranges + view->info.thread_count;
        hfn_view_node_ranges(view, s->first, s->end);
        write_file(s);
    }
    if (out) {
        ok = hfn_json_close(out) && ok;
    }
    hfn_free_memory(&view->env, s, sizeof *s);
    hfn_free_memory(&view->env, ranges, range_bytes);
    return ok;
}

const hfn_exporter hfn_exporter_speedscope = {
    .name = "speedscope",
    .extension = ".speedscope.json",
    .about = "speedscope.app: stacks of each thread",
    .needs = HOTFN_NEEDS_TIMES | HOTFN_NEEDS_TREE,
    .write = write_speedscope,
};
