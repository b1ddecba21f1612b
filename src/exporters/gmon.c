/* SPDX-License-Identifier: MIT */
/* gmon.out (binutils, gprof: "File Format"): self time as a histogram over the program's text,
 * calls as arcs.  The format holds one module, the program itself, at the addresses of its link.
 * Calls are clamped to 32 bits; without edges, every call comes from "spontaneous". */
#include "exporters/exporter.h"

#include <string.h>

enum { TAG_HISTOGRAM = 0, TAG_ARC = 1, ADDRESS_BYTES = 8 };
#define MAX_BINS (UINT64_C(1) << 24)
#define MAX_BIN_VALUE 65535u
/* A program below this address is not position-independent: it was loaded at its link address. */
#define MIN_PIE_ADDRESS UINT64_C(0x80000000)

typedef struct gmon {
    const hfn_view *view;
    hfn_sink *sink;
    uint32_t module;
    uint64_t base;      /* link address of RVA 0 */
    uint64_t low, high; /* RVAs */
    uint64_t bin_bytes;
    uint32_t rate; /* ticks per second */
    uint16_t *bins;
} gmon;

static bool is_in_histogram(const gmon *g, const hotfn_record_function *f)
{
    return f->module == g->module && f->counted;
}

static bool find_program(gmon *g)
{
    for (uint32_t i = 0; i < g->view->info.module_count; i++) {
        hotfn_record_module m;
        hfn_view_module(g->view, i, &m);
        if (m.function_count > 0 && (m.flags & HOTFN_MODULE_MAIN)) {
            g->module = i;
            g->base = m.load_base < MIN_PIE_ADDRESS ? m.load_base : 0;
            return true;
        }
    }
    return false;
}

static uint64_t bins_of(const gmon *g, const hotfn_record_function *f)
{
    uint64_t bytes = f->byte_count ? f->byte_count : 1;
    return (bytes + g->bin_bytes - 1) / g->bin_bytes;
}

static void find_text(gmon *g)
{
    g->low = UINT64_MAX;
    for (uint32_t i = 0; i < g->view->info.function_count; i++) {
        hotfn_record_function f;
        hfn_view_function(g->view, i, &f);
        if (is_in_histogram(g, &f) && f.rva < UINT64_MAX / 2 && f.byte_count < UINT32_MAX) {
            uint64_t end = f.rva + (f.byte_count ? f.byte_count : 1);
            g->low = f.rva < g->low ? f.rva : g->low;
            g->high = end > g->high ? end : g->high;
        }
    }
    g->low = (g->low < g->high ? g->low : g->high) & ~UINT64_C(1);
    g->high += g->high & 1;
    g->bin_bytes = 2; /* gprof counts addresses in units of two bytes */
    while ((g->high - g->low) / g->bin_bytes > MAX_BINS) {
        g->bin_bytes *= 2;
    }
}

/* Choose the highest rate at which the self time of each function fits into its bins. */
static void choose_rate(gmon *g)
{
    for (g->rate = 1000000; g->rate > 1; g->rate /= 10) {
        bool fits = true;
        for (uint32_t i = 0; fits && i < g->view->info.function_count; i++) {
            hotfn_record_function f;
            hotfn_record_timing t;
            hfn_view_function(g->view, i, &f);
            hfn_view_timing(g->view, i, &t);
            fits = !is_in_histogram(g, &f) ||
                   t.self_ns / (1000000000u / g->rate) <= bins_of(g, &f) * MAX_BIN_VALUE;
        }
        if (fits) {
            return;
        }
    }
}

static void fill_bins(gmon *g, const hotfn_record_function *f, uint64_t ticks)
{
    uint64_t first = (f->rva - g->low) / g->bin_bytes;
    uint64_t count = bins_of(g, f), last = (g->high - g->low) / g->bin_bytes;
    for (uint64_t i = first; ticks > 0 && i < first + count && i < last; i++) {
        uint64_t room = MAX_BIN_VALUE - g->bins[i], take = ticks < room ? ticks : room;
        g->bins[i] = (uint16_t)(g->bins[i] + take);
        ticks -= take;
    }
}

static void put_histogram(gmon *g)
{
    uint64_t count = (g->high - g->low) / g->bin_bytes;
    for (uint32_t i = 0; i < g->view->info.function_count; i++) {
        hotfn_record_function f;
        hotfn_record_timing t;
        hfn_view_function(g->view, i, &f);
        hfn_view_timing(g->view, i, &t);
        if (is_in_histogram(g, &f) && f.rva >= g->low && f.rva < g->high) {
            uint64_t tick_ns = 1000000000u / g->rate;
            fill_bins(g, &f, (t.self_ns + tick_ns / 2) / tick_ns);
        }
    }
    hfn_sink_le(g->sink, TAG_HISTOGRAM, 1);
    hfn_sink_le(g->sink, g->base + g->low, ADDRESS_BYTES);
    hfn_sink_le(g->sink, g->base + g->low + count * g->bin_bytes, ADDRESS_BYTES);
    hfn_sink_le(g->sink, count, 4);
    hfn_sink_le(g->sink, g->rate, 4);
    hfn_sink_bytes(g->sink, "seconds\0\0\0\0\0\0\0\0", 15);
    hfn_sink_text(g->sink, "s");
    for (uint64_t i = 0; i < count; i++) {
        hfn_sink_le(g->sink, g->bins[i], 2);
    }
}

static void put_arc(const gmon *g, uint64_t from, uint64_t to, uint64_t calls)
{
    hfn_sink_le(g->sink, TAG_ARC, 1);
    hfn_sink_le(g->sink, from, ADDRESS_BYTES);
    hfn_sink_le(g->sink, to, ADDRESS_BYTES);
    hfn_sink_le(g->sink, calls < INT32_MAX ? calls : INT32_MAX, 4);
}

/* The address of the caller; 0 ("spontaneous") if it is not a function of the program. */
static uint64_t caller_address(const gmon *g, uint32_t caller)
{
    hotfn_record_function f;
    if (caller == HOTFN_NO_FUNCTION) {
        return 0;
    }
    hfn_view_function(g->view, caller, &f);
    return f.module == g->module ? g->base + f.rva : 0;
}

static void put_arcs(const gmon *g)
{
    hotfn_record_function f;
    for (uint32_t i = 0; i < g->view->time.edge_count && !g->sink->failed; i++) {
        hotfn_record_edge e;
        hfn_view_edge(g->view, i, &e);
        if (e.callee == HOTFN_NO_FUNCTION) {
            continue;
        }
        hfn_view_function(g->view, e.callee, &f);
        if (is_in_histogram(g, &f)) {
            put_arc(g, caller_address(g, e.caller), g->base + f.rva, e.calls);
        }
    }
    for (uint32_t i = 0; g->view->time.edge_count == 0 && i < g->view->info.function_count; i++) {
        hfn_view_function(g->view, i, &f);
        if (is_in_histogram(g, &f) && f.calls > 0) {
            put_arc(g, 0, g->base + f.rva, f.calls);
        }
    }
}

static bool write_gmon(const hfn_view *view, hfn_sink *sink)
{
    gmon g = { .view = view, .sink = sink };
    static const char nothing[12];
    hfn_sink_text(sink, "gmon");
    hfn_sink_le(sink, 1, 4);
    hfn_sink_bytes(sink, nothing, sizeof nothing);
    if (!find_program(&g)) {
        return true;
    }
    find_text(&g);
    size_t bytes = (size_t)((g.high - g.low) / g.bin_bytes) * sizeof *g.bins;
    g.bins = hfn_allocate_zeroed(&view->env, bytes);
    if (!g.bins) {
        return false;
    }
    if (view->time.flags) {
        choose_rate(&g);
        put_histogram(&g);
    }
    put_arcs(&g);
    hfn_free_memory(&view->env, g.bins, bytes);
    return true;
}

const hfn_exporter hfn_exporter_gmon = {
    .name = "gmon",
    .extension = ".gmon",
    .about = "gprof: the program's own functions and who called whom",
    .needs = HOTFN_NEEDS_FLAT,
    .write = write_gmon,
};
