/* SPDX-License-Identifier: MIT */
/* Makes a record from what a listener has stored of a stream: a live record is filled as if a clock
 * of nanoseconds had timed the calls, and finished immediately. */
#include "events/stream.h"

#include "base/status.h"
#include "records/finish.h"

#include <stdio.h>

#define NO_MODULE_PATH "(module not received)"
#define STRING_SLACK_BYTES 65536u

/* The order of the record's functions: those of each module in order of arrival, then those whose
 * module or name was not received. */
typedef struct function_order {
    uint32_t *functions; /* indices in the stream, in this order                      */
    uint32_t *ends;      /* by module: the end of its functions in that list          */
    uint32_t *slots;     /* by index in the stream: the function's slot in the record */
} function_order;

/* ---- Functions. */

/* The index of a function's module; module_count if the module is not known. */
static uint32_t get_module(const hfn_stream *s, const hfn_stream_function *f)
{
    uint32_t index =
        f->name ? hfn_names_find(s->module_index, (const char *)&f->module, sizeof f->module)
                : HFN_NAME_NONE;

    return index == HFN_NAME_NONE || !s->modules[index].path ? (uint32_t)s->module_count : index;
}

static bool order_functions(const hfn_stream *s, function_order *o)
{
    size_t modules = s->module_count + 1, at = 0;

    o->functions = hfn_allocate_zeroed(&s->env, (s->function_count + 1) * sizeof(uint32_t));
    o->slots = hfn_allocate_zeroed(&s->env, (s->function_count + 1) * sizeof(uint32_t));
    o->ends = hfn_allocate_zeroed(&s->env, modules * sizeof(uint32_t));
    if (!o->functions || !o->slots || !o->ends) {
        return false;
    }
    for (size_t i = 0; i < s->function_count; i++) {
        o->ends[get_module(s, &s->functions[i])]++;
    }
    for (size_t m = 0; m < modules; m++) {
        uint32_t count = o->ends[m];
        o->ends[m] = (uint32_t)at; /* the next loop advances it to the end */
        at += count;
    }
    for (uint32_t i = 0; i < s->function_count; i++) {
        o->functions[o->ends[get_module(s, &s->functions[i])]++] = i;
    }
    return true;
}

static void free_order(const hfn_stream *s, function_order *o)
{
    hfn_free_memory(&s->env, o->functions, (s->function_count + 1) * sizeof(uint32_t));
    hfn_free_memory(&s->env, o->slots, (s->function_count + 1) * sizeof(uint32_t));
    hfn_free_memory(&s->env, o->ends, (s->module_count + 1) * sizeof(uint32_t));
}

static void describe_function(const hfn_stream_function *f, hotfn_record_function *out, char *name,
                              size_t name_bytes)
{
    *out = (hotfn_record_function)HOTFN_RECORD_FUNCTION_INIT;
    snprintf(name, name_bytes, "function %u", f->number);
    out->name = f->name && f->name[0] ? f->name : name;
    out->name_count = 1;
    out->names = "";
    out->rva = f->name ? f->rva : f->number;
    out->byte_count = f->byte_count;
    out->state = HOTFN_STATE_HOOKED;
    out->flags = HOTFN_VERDICT_TIMED;
    out->strategy = out->reason = out->reason_text = "";
}

static hotfn_status add_functions(const hfn_stream *s, hfn_live *live, function_order *o,
                                  uint32_t first, const hotfn_record_module *m, hotfn_error *err)
{
    enum { NAME_BYTES = 32 };
    size_t count = m->function_count;
    hotfn_record_function *list = hfn_allocate_zeroed(&s->env, count * sizeof *list);
    char *names = hfn_allocate_zeroed(&s->env, count * NAME_BYTES);
    hotfn_status status = list && names ? HOTFN_OK : hfn_report_no_memory(err, NULL);
    uint32_t index = 0;

    for (size_t i = 0; status == HOTFN_OK && i < count; i++) {
        describe_function(&s->functions[o->functions[first + i]], &list[i], names + i * NAME_BYTES,
                          NAME_BYTES);
    }
    if (status == HOTFN_OK) {
        status = hfn_live_add_module(live, m, list, &index, err);
    }
    const uint32_t *slots = status == HOTFN_OK ? hfn_live_get_slots(live, index) : NULL;
    for (size_t i = 0; slots && i < count; i++) {
        o->slots[o->functions[first + i]] = slots[i];
    }
    if (status == HOTFN_OK) {
        status = hfn_live_set_module(live, index, m->flags | HOTFN_MODULE_LOADED, 0, NULL);
    }
    hfn_free_memory(&s->env, list, count * sizeof *list);
    hfn_free_memory(&s->env, names, count * NAME_BYTES);
    return status;
}

static hotfn_status add_modules(const hfn_stream *s, hfn_live *live, function_order *o,
                                hotfn_error *err)
{
    hotfn_status status = HOTFN_OK;

    for (uint32_t i = 0; status == HOTFN_OK && i <= s->module_count; i++) {
        hotfn_record_module m = HOTFN_RECORD_MODULE_INIT;
        uint32_t first = i > 0 ? o->ends[i - 1] : 0;

        m.function_count = o->ends[i] - first;
        m.path = NO_MODULE_PATH;
        if (i < s->module_count) {
            const hfn_stream_module *from = &s->modules[i];
            m.path = from->path ? from->path : NO_MODULE_PATH;
            m.flags = from->flags & HOTFN_MODULE_MAIN;
            m.id_kind = from->id_kind;
            m.id_bytes = from->id_bytes;
            memcpy(m.id, from->id, sizeof from->id);
        }
        if (m.function_count > 0) {
            status = add_functions(s, live, o, first, &m, err);
        }
    }
    return status;
}

/* ---- Threads. */

static uint8_t *get_row(const hfn_live *live, uint32_t thread)
{
    return live->rows + (uint64_t)thread * live->layout.row_bytes;
}

static hfn_time_state *get_state(const hfn_live *live, uint32_t thread)
{
    const hfn_section *sections = live->layout.sections;

    return (hfn_time_state *)(void *)(get_row(live, thread) +
                                      (sections[HFN_SECTION_TIME_ROWS].offset -
                                       sections[HFN_SECTION_ROWS].offset));
}

static void put_events(const hfn_stream_thread *t, const function_order *o, hfn_time_event *ring,
                       uint64_t capacity)
{
    uint64_t first = t->event_count > t->event_capacity ? t->event_count - t->event_capacity : 0;

    for (uint64_t i = first; i < t->event_count; i++) {
        hfn_time_event e = t->events[i & (t->event_capacity - 1)];

        e.slot = o->slots[e.slot];
        ring[i & (capacity - 1)] = e;
    }
}

static void put_threads(const hfn_stream *s, hfn_live *live, const function_order *o)
{
    hfn_row_memory memory = hfn_live_activate_rows(live);
    uint64_t capacity = hfn_live_time_header(live)->event_capacity;
    hfn_time_event *events = (void *)hfn_live_section(live, HFN_SECTION_EVENTS);

    memory.header->cells_used = (uint32_t)s->thread_count;
    for (uint32_t i = 0; i < s->thread_count; i++) {
        const hfn_stream_thread *t = &s->threads[i];
        hfn_time_state *state = get_state(live, i);

        memory.cells[i] = (hfn_thread_cell){ .tid = t->thread_id,
                                             .pid = s->pid,
                                             .thread_count = 1,
                                             .process_count = 1,
                                             .process = s->pid,
                                             .start_ns = s->start_ns + t->first_ns };
        state->root = t->root;
        state->first_tick = t->first_ns;
        state->last_tick = t->last_ns;
        state->events = t->event_count;
        state->thread = i + 1;
        put_events(t, o, events + i * capacity, capacity);
    }
}

static void put_nodes(const hfn_stream *s, hfn_live *live, const function_order *o)
{
    hfn_time_header *h = hfn_live_time_header(live);
    hfn_time_node *nodes = (void *)hfn_live_section(live, HFN_SECTION_NODES);

    h->nodes_used = (uint32_t)s->node_count;
    for (size_t i = 0; i < s->node_count; i++) {
        const hfn_stream_node *n = &s->nodes[i];
        bool is_root = n->function == UINT32_MAX;
        uint32_t slot = is_root ? HOTFN_NO_SLOT : o->slots[n->function];

        nodes[i] = (hfn_time_node){ .parent = n->parent,
                                    .slot = slot,
                                    .thread = n->thread,
                                    .flags = HFN_NODE_USED,
                                    .calls = n->calls,
                                    .total_ticks = n->self_ns,
                                    .timed_calls = n->calls,
                                    .first_child = n->first_child,
                                    .next_sibling = n->next_sibling };
        if (is_root) {
            continue;
        }
        uint64_t *calls = (uint64_t *)(void *)get_row(live, n->thread);
        hfn_time_cell *cells = (void *)((uint8_t *)get_state(live, n->thread) + h->cells_at);
        calls[slot] += n->calls;
        cells[slot].max_ticks =
            n->max_ns > cells[slot].max_ticks ? n->max_ns : cells[slot].max_ticks;
    }
}

/* ---- The record. */

static uint64_t count_string_bytes(const hfn_stream *s)
{
    uint64_t bytes = STRING_SLACK_BYTES;

    for (size_t i = 0; i < s->function_count; i++) {
        bytes += (s->functions[i].name ? strlen(s->functions[i].name) : 0) + 64;
    }
    for (size_t i = 0; i < s->module_count; i++) {
        bytes += (s->modules[i].path ? strlen(s->modules[i].path) : 0) + 64;
    }
    return bytes;
}

static hotfn_status create_record(const hfn_stream *s, hfn_live **out, hotfn_error *err)
{
    hfn_live_options o = { .command = s->command ? s->command : "",
                           .slot_capacity = (uint32_t)s->function_count + 1,
                           .function_capacity = (uint32_t)s->function_count + 1,
                           .module_capacity = (uint32_t)s->module_count + 2,
                           .thread_capacity = (uint32_t)s->thread_count + 1,
                           .string_bytes = count_string_bytes(s),
                           .timing = HOTFN_TIMING_TIMES | HOTFN_TIMING_TREE | HOTFN_TIMING_EVENTS,
                           .node_capacity = (uint32_t)s->node_count + 1,
                           .histogram_capacity = 1,
                           .event_capacity = HFN_STREAM_KEPT_EVENTS };
    hotfn_status status = hfn_live_create(out, &o, &s->env, err);

    if (status != HOTFN_OK) {
        return status;
    }
    hfn_time_header *h = hfn_live_time_header(*out);
    h->clock = HOTFN_CLOCK_MONOTONIC;
    h->ticks_per_second = 1000000000;
    h->start_ticks = 0;
    h->resolution_ticks = 1;
    (*out)->clock = (hfn_clock){ 0 }; /* so that no clock is read when the record is finished */
    hfn_live_set_pid(*out, s->pid);
    hfn_write_le64((*out)->base + HFN_AT_START_NS, s->start_ns);
    return HOTFN_OK;
}

hotfn_status hfn_stream_save(const hfn_stream *s, const char *path, hotfn_error *err)
{
    hfn_live *live = NULL;
    function_order o = { 0 };
    hotfn_status status = create_record(s, &live, err);

    if (status == HOTFN_OK && !order_functions(s, &o)) {
        status = hfn_report_no_memory(err, path);
    }
    if (status == HOTFN_OK) {
        status = add_modules(s, live, &o, err);
    }
    if (status == HOTFN_OK) {
        put_threads(s, live, &o);
        put_nodes(s, live, &o);
        status = hfn_live_finish(live, path, HOTFN_RECORD_FINISHED, 0, NULL, NULL, err);
    }
    free_order(s, &o);
    hfn_live_close(live);
    return status;
}
