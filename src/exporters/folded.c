/* SPDX-License-Identifier: MIT */
/* Folded stacks, one on each line: outermost;...;innermost value (flamegraph.pl, inferno,
 * speedscope).  The value is the self time in nanoseconds of the innermost function, or by
 * options.by the bytes that it allocated or its calls. */
#include "exporters/exporter.h"

#include <inttypes.h>
#include <string.h>

#define MAX_DEPTH 4096u

/* Semicolons and the last space are separators of the format. */
static void put_name(hfn_sink *sink, const char *name)
{
    for (const char *at = name; *at; at++) {
        bool bad = *at == ';' || (unsigned char)*at < 0x20 || *at == 0x7f;
        hfn_sink_bytes(sink, bad ? ":" : at, 1);
    }
}

static bool write_folded(const hfn_view *view, hfn_sink *sink)
{
    uint32_t *stack = hfn_allocate_zeroed(&view->env, MAX_DEPTH * sizeof *stack);
    char shown[8192], thread[64];
    hotfn_record_function f;
    hotfn_record_node n;
    if (!stack) {
        return false;
    }
    for (uint32_t i = 0; i < view->time.node_count && !sink->failed; i++) {
        hfn_view_reach(view, i, view->time.node_count);
        hfn_view_node(view, i, &n);
        if (hfn_view_weight(view, &n) == 0) {
            continue;
        }
        put_name(sink, hfn_view_thread_name(view, n.thread, thread, sizeof thread));
        uint32_t depth = hfn_view_stack(view, i, stack, MAX_DEPTH);
        for (uint32_t k = 0; k < depth; k++) {
            hfn_view_function(view, stack[k], &f);
            hfn_sink_text(sink, ";");
            put_name(sink, hfn_view_display(view, &f, shown, sizeof shown));
        }
        hfn_sink_format(sink, " %" PRIu64 "\n", hfn_view_weight(view, &n));
    }
    hfn_free_memory(&view->env, stack, MAX_DEPTH * sizeof *stack);
    return true;
}

const hfn_exporter hfn_exporter_folded = {
    .name = "folded",
    .extension = ".folded",
    .about = "stacks for flame graphs: flamegraph.pl, inferno, speedscope",
    .needs = HOTFN_NEEDS_TIMES | HOTFN_NEEDS_TREE,
    .write = write_folded,
};
