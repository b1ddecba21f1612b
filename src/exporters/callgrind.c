/* SPDX-License-Identifier: MIT */
/* callgrind.out (valgrind.org/docs/manual/cl-format.html): self time, calls and, if recorded,
 * allocated bytes and blocks of each function, and each edge with its calls and inclusive time.  A
 * counted record gives calls only.  The position of a function is its RVA. */
#include "exporters/exporter.h"

#include <inttypes.h>
#include <string.h>

/* Write a name as its number; the first time, the name itself follows.  Control characters are
 * replaced by spaces. */
static void put_name(hfn_sink *sink, const char *key, uint32_t number, const char *name, bool first)
{
    hfn_sink_format(sink, "%s=(%" PRIu32 ")", key, number + 1);
    if (first) {
        hfn_sink_text(sink, " ");
        for (const char *at = name; *at; at++) {
            bool control = (unsigned char)*at < 0x20 || *at == 0x7f;
            hfn_sink_bytes(sink, control ? " " : at, 1);
        }
    }
    hfn_sink_text(sink, "\n");
}

typedef struct grind {
    const hfn_view *view;
    hfn_sink *sink;
    uint8_t *function_known, *module_known;
    uint32_t
        *first_edge; /* by caller; the last element is for calls from outside; UINT32_MAX: none */
    bool timed, with_memory;
    char shown[8192];
} grind;

static void put_module(grind *g, const char *key, uint32_t module)
{
    hotfn_record_module m;
    hfn_view_module(g->view, module, &m);
    put_name(g->sink, key, module, m.path, !g->module_known[module]);
    g->module_known[module] = 1;
}

static void put_function(grind *g, const char *key, uint32_t index, const hotfn_record_function *f)
{
    const char *name = hfn_view_display(g->view, f, g->shown, sizeof g->shown);
    put_name(g->sink, key, index, name, !g->function_known[index]);
    g->function_known[index] = 1;
}

static void put_costs(const grind *g, uint64_t rva, uint64_t ns, uint64_t calls,
                      const hotfn_alloc_cell *alloc)
{
    if (!g->timed) {
        hfn_sink_format(g->sink, "0x%" PRIx64 " %" PRIu64 "\n", rva, calls);
        return;
    }
    hfn_sink_format(g->sink, "0x%" PRIx64 " %" PRIu64 " %" PRIu64, rva, ns, calls);
    if (g->with_memory) {
        hfn_sink_format(g->sink, " %" PRIu64 " %" PRIu64, alloc->allocated_bytes,
                        alloc->allocated_blocks);
    }
    hfn_sink_text(g->sink, "\n");
}

static const hotfn_alloc_cell no_memory;

/* Readers add an edge's inclusive costs to those of its caller, so a recursive edge has none: they
 * would count twice.  The number of calls inside an edge is unknown; its own calls are the
 * minimum. */
static void put_edge(grind *g, uint64_t caller_rva, const hotfn_record_edge *e)
{
    hotfn_record_function callee;
    hfn_view_function(g->view, e->callee, &callee);
    put_module(g, "cob", callee.module);
    hfn_sink_text(g->sink, "cfi=(1)\n");
    put_function(g, "cfn", e->callee, &callee);
    hfn_sink_format(g->sink, "calls=%" PRIu64 " 0x%" PRIx64 "\n", e->calls, callee.rva);
    bool recursive = e->caller == e->callee;
    put_costs(g, caller_rva, recursive ? 0 : e->total_ns, recursive ? 0 : e->calls,
              recursive ? &no_memory : &e->total_alloc);
}

/* Write the edges of a caller, which follow each other in the record. */
static void put_edges(grind *g, uint32_t caller, uint32_t first, uint64_t caller_rva)
{
    hotfn_record_edge e;
    for (uint32_t i = first; i < g->view->time.edge_count; i++) {
        hfn_view_edge(g->view, i, &e);
        if (e.caller != caller) {
            break;
        }
        if (e.callee != HOTFN_NO_FUNCTION) {
            put_edge(g, caller_rva, &e);
        }
    }
}

static void put_function_block(grind *g, uint32_t index)
{
    hotfn_record_function f;
    hotfn_record_timing t;
    hfn_view_function(g->view, index, &f);
    hfn_view_timing(g->view, index, &t);
    if (!f.counted || f.calls == 0) {
        return;
    }
    hfn_sink_text(g->sink, "\n");
    put_module(g, "ob", f.module);
    hfn_sink_text(g->sink, "fl=(1)\n");
    put_function(g, "fn", index, &f);
    put_costs(g, f.rva, t.self_ns, f.calls, &t.self_alloc);
    put_edges(g, index, g->first_edge[index], f.rva);
}

/* Functions called from code without hooks get an edge from a made-up caller, because readers sum
 * a function's inclusive time over its callers where it has any. */
static void put_outside(grind *g)
{
    uint32_t count = g->view->info.function_count;
    if (g->first_edge[count] == UINT32_MAX) {
        return;
    }
    hfn_sink_format(g->sink, "\nob=(%" PRIu32 ") ???\nfl=(1)\n", g->view->info.module_count + 1);
    put_name(g->sink, "fn", count, "(outside)", true);
    put_costs(g, 0, 0, 0, &no_memory);
    put_edges(g, HOTFN_NO_FUNCTION, g->first_edge[count], 0);
}

static void put_line(hfn_sink *sink, const char *key, const char *text)
{
    hfn_sink_text(sink, key);
    for (const char *at = text; *at; at++) {
        hfn_sink_bytes(sink, (unsigned char)*at < 0x20 ? " " : at, 1);
    }
    hfn_sink_text(sink, "\n");
}

/* Write the sum of the costs of all listed functions. */
static void put_summary(const grind *g)
{
    uint64_t ns = 0, bytes = 0, blocks = 0;
    for (uint32_t i = 0; i < g->view->count; i++) {
        hotfn_record_timing t;
        hfn_view_timing(g->view, g->view->order[i], &t);
        ns += t.self_ns;
        bytes += t.self_alloc.allocated_bytes;
        blocks += t.self_alloc.allocated_blocks;
    }
    hfn_sink_format(g->sink, "summary: %" PRIu64 " %" PRIu64, ns, g->view->total_calls);
    if (g->with_memory) {
        hfn_sink_format(g->sink, " %" PRIu64 " %" PRIu64, bytes, blocks);
    }
    hfn_sink_text(g->sink, "\n");
}

/* callgrind_annotate ends the header at `events:`, so `positions:` stands before it. */
static void put_header(const grind *g)
{
    hfn_sink_text(g->sink, "# callgrind format\nversion: 1\ncreator: hotfn ");
    put_line(g->sink, "", hotfn_get_version());
    hfn_sink_format(g->sink, "pid: %" PRIu32 "\n", g->view->info.pid);
    put_line(g->sink, "cmd: ", g->view->info.command);
    hfn_sink_text(g->sink, "part: 1\ndesc: Trigger: Program termination\npositions: instr\n");
    if (g->timed) {
        hfn_sink_text(g->sink, "event: Ns : nanoseconds\nevent: Calls : calls\n");
        hfn_sink_text(g->sink, g->with_memory
                                   ? "event: Bytes : bytes allocated\nevent: Blocks : blocks "
                                     "allocated\nevents: Ns Calls Bytes Blocks\n"
                                   : "events: Ns Calls\n");
        put_summary(g);
    } else {
        hfn_sink_text(g->sink, "event: Calls : calls\nevents: Calls\n");
        hfn_sink_format(g->sink, "summary: %" PRIu64 "\n", g->view->total_calls);
    }
}

/* Source files are not known: "???" is callgrind's own word for that. */
static void put_file(const grind *g)
{
    hfn_sink_text(g->sink, "\nfl=(1) ???\n");
}

static void find_edges(grind *g)
{
    hotfn_record_edge e;
    uint32_t count = g->view->info.function_count;
    memset(g->first_edge, 0xff, (count + 1u) * sizeof *g->first_edge);
    for (uint32_t i = g->view->time.edge_count; i-- > 0;) {
        hfn_view_edge(g->view, i, &e);
        g->first_edge[e.caller < count ? e.caller : count] = i;
    }
}

static bool write_callgrind(const hfn_view *view, hfn_sink *sink)
{
    uint32_t functions = view->info.function_count, modules = view->info.module_count;
    grind *g = hfn_allocate_zeroed(&view->env, sizeof *g);
    if (!g) {
        return false;
    }
    *g = (grind){ .view = view,
                  .sink = sink,
                  .timed = view->time.flags != 0,
                  .with_memory = view->time.flags & HOTFN_TIMING_ALLOC };
    g->function_known = hfn_allocate_zeroed(&view->env, functions);
    g->module_known = hfn_allocate_zeroed(&view->env, modules);
    g->first_edge = hfn_allocate_zeroed(&view->env, (functions + 1u) * sizeof *g->first_edge);
    bool ok = g->function_known && g->module_known && g->first_edge;
    if (ok) {
        find_edges(g);
        put_header(g);
        put_file(g);
        for (uint32_t i = 0; i < view->limit && !sink->failed; i++) {
            hfn_view_reach(view, i, view->limit);
            put_function_block(g, view->order[i]);
        }
        put_outside(g);
    }
    hfn_free_memory(&view->env, g->function_known, functions);
    hfn_free_memory(&view->env, g->module_known, modules);
    hfn_free_memory(&view->env, g->first_edge, (functions + 1u) * sizeof *g->first_edge);
    hfn_free_memory(&view->env, g, sizeof *g);
    return ok;
}

const hfn_exporter hfn_exporter_callgrind = {
    .name = "callgrind",
    .extension = ".callgrind",
    .about = "KCachegrind, callgrind_annotate: functions and edges",
    .needs = HOTFN_NEEDS_FLAT,
    .write = write_callgrind,
};
