/* SPDX-License-Identifier: MIT */
/* pprof (github.com/google/pprof, proto/profile.proto), uncompressed, which all readers accept.  If
 * the record has a call tree, a sample is a stack with its calls, its self time and, if recorded,
 * the memory that it allocated and freed.  Otherwise each function is a sample without callers, and
 * a comment in the file explains this. */
#include "exporters/protobuf.h"

#include <inttypes.h>
#include <stdio.h>

#define MAX_DEPTH 4096u
#define MODULE_SHIFT 40 /* module i is at (i + 1) << MODULE_SHIFT; the lower bits are an RVA */

enum { /* fields */
       PROFILE_SAMPLE_TYPE = 1,
       PROFILE_SAMPLE,
       PROFILE_MAPPING,
       PROFILE_LOCATION,
       PROFILE_FUNCTION,
       PROFILE_STRING,
       PROFILE_TIME_NANOS = 9,
       PROFILE_DURATION_NANOS,
       PROFILE_COMMENT = 13,
       PROFILE_DEFAULT_TYPE,
};

/* Indices in the string table: these texts, then two for each module (path, id), two for each
 * function (display name, linker name) and one for each thread. */
enum {
    TEXT_EMPTY,
    TEXT_CALLS,
    TEXT_COUNT,
    TEXT_TIME,
    TEXT_NANOSECONDS,
    TEXT_ALLOC_OBJECTS, /* as in Go's own heap profiles */
    TEXT_ALLOC_SPACE,
    TEXT_FREE_OBJECTS,
    TEXT_FREE_SPACE,
    TEXT_BYTES,
    TEXT_THREAD,
    TEXT_COMMENT,
    TEXTS
};

typedef struct pprof {
    const hfn_view *view;
    hfn_sink *sink;
    hfn_message whole, part;
    bool timed, ok, with_memory;
    uint32_t *stack;
} pprof;

static uint64_t module_text(uint32_t module)
{
    return TEXTS + 2ull * module;
}

static uint64_t function_text(const pprof *p, uint32_t function)
{
    return module_text(p->view->info.module_count) + 2ull * function;
}

static uint64_t thread_text(const pprof *p, uint32_t thread)
{
    return function_text(p, p->view->info.function_count) + thread;
}

static void send_field(pprof *p, uint32_t field)
{
    p->ok = hfn_message_send(&p->whole, field, p->sink) && p->ok;
}

static void put_type(pprof *p, uint64_t type, uint64_t unit)
{
    hfn_message_number(&p->whole, 1, type);
    hfn_message_number(&p->whole, 2, unit);
    send_field(p, PROFILE_SAMPLE_TYPE);
}

/* ---- Samples.  A location id is the function's index plus 1; the innermost comes first. */

static void put_values(pprof *p, uint64_t calls, uint64_t ns, const hotfn_alloc_cell *alloc)
{
    hfn_message_number(&p->whole, 2, calls);
    if (p->timed) {
        hfn_message_number(&p->whole, 2, ns);
    }
    if (p->with_memory) {
        hfn_message_number(&p->whole, 2, alloc->allocated_blocks);
        hfn_message_number(&p->whole, 2, alloc->allocated_bytes);
        hfn_message_number(&p->whole, 2, alloc->freed_blocks);
        hfn_message_number(&p->whole, 2, alloc->freed_bytes);
    }
}

static void put_stacks(pprof *p)
{
    hotfn_record_node n;
    for (uint32_t i = 0; i < p->view->time.node_count && !p->sink->failed; i++) {
        hfn_view_reach(p->view, i, p->view->time.node_count);
        hfn_view_node(p->view, i, &n);
        if (n.calls == 0 && n.self_ns == 0) {
            continue;
        }
        for (uint32_t k = hfn_view_stack(p->view, i, p->stack, MAX_DEPTH); k-- > 0;) {
            hfn_message_number(&p->whole, 1, p->stack[k] + 1ull);
        }
        put_values(p, n.calls, n.self_ns, &n.self_alloc);
        hfn_message_clear(&p->part);
        hfn_message_number(&p->part, 1, TEXT_THREAD);
        hfn_message_number(&p->part, 2, thread_text(p, n.thread));
        hfn_message_inner(&p->whole, 3, &p->part);
        send_field(p, PROFILE_SAMPLE);
    }
}

static void put_functions_as_samples(pprof *p)
{
    for (uint32_t i = 0; i < p->view->count && !p->sink->failed; i++) {
        hotfn_record_function f;
        hotfn_record_timing t;
        hfn_view_function(p->view, p->view->order[i], &f);
        hfn_view_timing(p->view, p->view->order[i], &t);
        if (f.counted && f.calls > 0) {
            hfn_message_number(&p->whole, 1, p->view->order[i] + 1ull);
            put_values(p, f.calls, t.self_ns, &t.self_alloc);
            send_field(p, PROFILE_SAMPLE);
        }
    }
}

/* ---- Tables of modules, functions and strings. */

static void put_modules(pprof *p)
{
    for (uint32_t i = 0; i < p->view->info.module_count; i++) {
        hfn_message_number(&p->whole, 1, i + 1ull);
        hfn_message_number(&p->whole, 2, (i + 1ull) << MODULE_SHIFT);
        hfn_message_number(&p->whole, 3, (i + 2ull) << MODULE_SHIFT);
        hfn_message_number(&p->whole, 5, module_text(i));
        hfn_message_number(&p->whole, 6, module_text(i) + 1);
        hfn_message_number(&p->whole, 7, 1);
        send_field(p, PROFILE_MAPPING);
    }
}

static void put_functions(pprof *p)
{
    for (uint32_t i = 0; i < p->view->info.function_count && !p->sink->failed; i++) {
        hotfn_record_function f;
        hfn_view_reach(p->view, i, p->view->info.function_count);
        hfn_view_function(p->view, i, &f);
        hfn_message_number(&p->whole, 1, i + 1ull);
        hfn_message_number(&p->whole, 2, f.module + 1ull);
        hfn_message_number(&p->whole, 3, ((f.module + 1ull) << MODULE_SHIFT) + f.rva);
        hfn_message_clear(&p->part);
        hfn_message_number(&p->part, 1, i + 1ull);
        hfn_message_inner(&p->whole, 4, &p->part);
        send_field(p, PROFILE_LOCATION);
        hfn_message_number(&p->whole, 1, i + 1ull);
        hfn_message_number(&p->whole, 2, function_text(p, i));
        hfn_message_number(&p->whole, 3, function_text(p, i) + 1);
        hfn_message_number(&p->whole, 4, module_text(f.module));
        send_field(p, PROFILE_FUNCTION);
    }
}

/* Each string is a field of the outermost message, which is never kept in memory as a whole. */
static void put_text(pprof *p, const char *text)
{
    hfn_message_text(&p->whole, PROFILE_STRING, text);
    p->ok = p->ok && !p->whole.failed;
    hfn_sink_bytes(p->sink, (const char *)p->whole.bytes, p->ok ? p->whole.count : 0);
    hfn_message_clear(&p->whole);
}

static void put_module_texts(pprof *p)
{
    for (uint32_t i = 0; i < p->view->info.module_count; i++) {
        char id[2 * sizeof(((hotfn_record_module *)0)->id) + 1] = "";
        hotfn_record_module m;
        hfn_view_module(p->view, i, &m);
        for (uint32_t k = 0; k < m.id_bytes && k < sizeof m.id; k++) {
            snprintf(id + (size_t)2 * k, 3, "%02x", m.id[k]);
        }
        put_text(p, m.path);
        put_text(p, id);
    }
}

static void put_texts(pprof *p)
{
    static const char *const fixed[TEXTS] = { "",
                                              "calls",
                                              "count",
                                              "time",
                                              "nanoseconds",
                                              "alloc_objects",
                                              "alloc_space",
                                              "free_objects",
                                              "free_space",
                                              "bytes",
                                              "thread" };
    char shown[8192], thread[64];
    for (int i = 0; i < TEXTS - 1; i++) {
        put_text(p, fixed[i]);
    }
    put_text(p, p->view->time.node_count ? "hotfn: calls and times"
                                         : "hotfn: without call stacks, so cum equals flat");
    put_module_texts(p);
    for (uint32_t i = 0; i < p->view->info.function_count && !p->sink->failed; i++) {
        hotfn_record_function f;
        hfn_view_function(p->view, i, &f);
        put_text(p, hfn_view_display(p->view, &f, shown, sizeof shown));
        put_text(p, f.name);
    }
    for (uint32_t i = 0; i < p->view->info.thread_count; i++) {
        put_text(p, hfn_view_thread_name(p->view, i, thread, sizeof thread));
    }
}

/* The numeric fields of the outermost message: time, duration, comment, default type. */
static void put_numbers(pprof *p)
{
    const hotfn_record_info *info = &p->view->info;
    hfn_message_number(&p->whole, PROFILE_TIME_NANOS, info->start_ns);
    if (info->end_ns > info->start_ns) {
        hfn_message_number(&p->whole, PROFILE_DURATION_NANOS, info->end_ns - info->start_ns);
    }
    hfn_message_number(&p->whole, PROFILE_COMMENT, TEXT_COMMENT);
    hfn_message_number(&p->whole, PROFILE_DEFAULT_TYPE,
                       p->view->options.by == HOTFN_BY_ALLOC               ? TEXT_ALLOC_SPACE
                       : p->timed && p->view->options.by != HOTFN_BY_CALLS ? TEXT_TIME
                                                                           : TEXT_CALLS);
    p->ok = p->ok && !p->whole.failed;
    hfn_sink_bytes(p->sink, (const char *)p->whole.bytes, p->ok ? p->whole.count : 0);
    hfn_message_clear(&p->whole);
}

static bool write_pprof(const hfn_view *view, hfn_sink *sink)
{
    pprof p = { .view = view, .sink = sink, .timed = view->time.flags != 0 };
    p.with_memory = view->time.flags & HOTFN_TIMING_ALLOC;
    p.stack = hfn_allocate_zeroed(&view->env, MAX_DEPTH * sizeof *p.stack);
    p.ok = p.stack != NULL;
    if (!p.ok) {
        return false;
    }
    hfn_message_init(&p.whole, &view->env);
    hfn_message_init(&p.part, &view->env);
    put_type(&p, TEXT_CALLS, TEXT_COUNT);
    if (p.timed) {
        put_type(&p, TEXT_TIME, TEXT_NANOSECONDS);
    }
    if (p.with_memory) {
        put_type(&p, TEXT_ALLOC_OBJECTS, TEXT_COUNT);
        put_type(&p, TEXT_ALLOC_SPACE, TEXT_BYTES);
        put_type(&p, TEXT_FREE_OBJECTS, TEXT_COUNT);
        put_type(&p, TEXT_FREE_SPACE, TEXT_BYTES);
    }
    if (view->time.node_count) {
        put_stacks(&p);
    } else {
        put_functions_as_samples(&p);
    }
    put_modules(&p);
    put_functions(&p);
    put_texts(&p);
    put_numbers(&p);
    hfn_message_finish(&p.whole);
    hfn_message_finish(&p.part);
    hfn_free_memory(&view->env, p.stack, MAX_DEPTH * sizeof *p.stack);
    return p.ok;
}

const hfn_exporter hfn_exporter_pprof = {
    .name = "pprof",
    .extension = ".pb",
    .about = "go tool pprof, Pyroscope, Parca: stacks, or functions if there are no stacks",
    .needs = HOTFN_NEEDS_FLAT,
    .write = write_pprof,
};
