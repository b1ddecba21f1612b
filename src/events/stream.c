/* SPDX-License-Identifier: MIT */
#include "events/stream.h"

#include "base/demangle.h"
#include "base/status.h"
#include "base/utf8.h"

#include <stdio.h>
#include <string.h>

enum { NAME_BYTES = HOTFN_EVENTS_MAX_TEXT_BYTES + 1, READABLE_BYTES = 4096 };

/* ---- Memory. */

hfn_stream *hfn_stream_create(uint64_t id, uint32_t number, bool keeps, const hotfn_env *env)
{
    hfn_stream *s = hfn_allocate_zeroed(env, sizeof *s);

    if (!s) {
        return NULL;
    }
    s->env = *env;
    s->id = id;
    s->number = number;
    s->keeps = keeps;
    s->function_index = hfn_names_create(env);
    s->module_index = hfn_names_create(env);
    s->thread_index = hfn_names_create(env);
    if (!s->function_index || !s->module_index || !s->thread_index) {
        hfn_stream_destroy(s);
        return NULL;
    }
    return s;
}

static void free_text(const hfn_stream *s, char *text)
{
    hfn_free_memory(&s->env, text, text ? strlen(text) + 1 : 0);
}

static char *copy_text(const hfn_stream *s, const char *text, size_t length)
{
    char *copy = hfn_allocate_zeroed(&s->env, length + 1);

    if (copy) {
        memcpy(copy, text, length);
    }
    return copy;
}

void hfn_stream_destroy(hfn_stream *s)
{
    if (!s) {
        return;
    }
    hotfn_env env = s->env;

    hfn_keep_free(s);
    for (size_t i = 0; i < s->function_count; i++) {
        free_text(s, s->functions[i].name);
        free_text(s, s->functions[i].display);
    }
    for (size_t i = 0; i < s->module_count; i++) {
        free_text(s, s->modules[i].path);
    }
    for (size_t i = 0; i < s->thread_count; i++) {
        hfn_free_memory(&env, s->threads[i].open,
                        s->threads[i].open_capacity * sizeof *s->threads[i].open);
    }
    hfn_free_memory(&env, s->functions, s->function_capacity * sizeof *s->functions);
    hfn_free_memory(&env, s->modules, s->module_capacity * sizeof *s->modules);
    hfn_free_memory(&env, s->threads, s->thread_capacity * sizeof *s->threads);
    hfn_names_destroy(s->function_index);
    hfn_names_destroy(s->module_index);
    hfn_names_destroy(s->thread_index);
    free_text(s, s->command);
    hfn_free_memory(&env, s, sizeof *s);
}

/* Find the element of *items for a number from the network, or append a cleared one, and store its
 * index in *out.  HOTFN_E_LIMIT: there are `max` elements already. */
static hotfn_status find_index(hfn_stream *s, hfn_names *index, uint32_t number, uint32_t max,
                               void **items, size_t *capacity, size_t *count, size_t item_bytes,
                               uint32_t *out)
{
    *out = hfn_names_find(index, (const char *)&number, sizeof number);
    if (*out != HFN_NAME_NONE) {
        return HOTFN_OK;
    }
    if (*count >= max) {
        return HOTFN_E_LIMIT;
    }
    if (!hfn_grow_array(&s->env, items, capacity, *count + 1, item_bytes)) {
        return HOTFN_E_NO_MEMORY;
    }
    *out = hfn_names_intern(index, (const char *)&number, sizeof number);
    if (*out == HFN_NAME_NONE) {
        return HOTFN_E_NO_MEMORY;
    }
    memset((uint8_t *)*items + *count * item_bytes, 0, item_bytes);
    ++*count;
    return HOTFN_OK;
}

static hotfn_status find_function(hfn_stream *s, uint32_t number, uint32_t *out)
{
    hotfn_status status =
        find_index(s, s->function_index, number, HFN_STREAM_MAX_FUNCTIONS, (void **)&s->functions,
                   &s->function_capacity, &s->function_count, sizeof *s->functions, out);

    if (status == HOTFN_OK) {
        s->functions[*out].number = number;
    }
    return status;
}

static hotfn_status find_module(hfn_stream *s, uint32_t number, uint32_t *out)
{
    hotfn_status status =
        find_index(s, s->module_index, number, HFN_STREAM_MAX_MODULES, (void **)&s->modules,
                   &s->module_capacity, &s->module_count, sizeof *s->modules, out);

    if (status == HOTFN_OK) {
        s->modules[*out].number = number;
    }
    return status;
}

static hotfn_status find_thread(hfn_stream *s, uint32_t thread_id, uint32_t *out)
{
    size_t before = s->thread_count;
    hotfn_status status =
        find_index(s, s->thread_index, thread_id, HFN_STREAM_MAX_THREADS, (void **)&s->threads,
                   &s->thread_capacity, &s->thread_count, sizeof *s->threads, out);

    if (status == HOTFN_OK && s->thread_count > before) {
        s->threads[*out].thread_id = thread_id;
        s->threads[*out].is_stale = true;
    }
    return status;
}

/* ---- Readable texts. */

/* Replace what could control a terminal: control characters, and bytes that are not UTF-8. */
static void replace_unprintable(char *text)
{
    for (unsigned char *c = (unsigned char *)text; *c;) {
        size_t length = hfn_utf8_length(c);
        bool is_control = *c < 0x20 || *c == 0x7f || (c[0] == 0xc2 && c[1] < 0xa0);

        if (length == 0 || is_control) {
            *c++ = '?';
        } else {
            c += length;
        }
    }
}

static char *make_readable(const hfn_stream *s, const char *name)
{
    char readable[READABLE_BYTES];
    size_t length = s->env.demangle_fn
                        ? s->env.demangle_fn(s->env.demangle_user, name, readable, sizeof readable)
                        : 0;
    char *copy = length > 0 && length < sizeof readable ? copy_text(s, readable, length)
                                                        : copy_text(s, name, strlen(name));

    if (copy) {
        replace_unprintable(copy);
    }
    return copy;
}

static void report_event(const hfn_stream *s, const hfn_stream_report *to,
                         hotfn_listener_event *event)
{
    event->size = sizeof *event;
    event->stream = s->number;
    event->pid = s->pid;
    if (to->report) {
        to->report(to->user, event);
    }
}

static void report_call(const hfn_stream *s, const hfn_stream_report *to,
                        hotfn_listener_event *event, uint32_t function)
{
    const hfn_stream_function *f = &s->functions[function];
    char number[32];

    snprintf(number, sizeof number, "function %u", f->number);
    event->function = f->number;
    event->name = f->display && f->display[0] ? f->display : number;
    report_event(s, to, event);
}

/* ---- Names. */

static hotfn_status learn_function(hfn_stream *s, const hotfn_events_item *item)
{
    uint32_t index;
    hotfn_status status = find_function(s, item->function, &index);

    if (status != HOTFN_OK || s->functions[index].name) {
        return status;
    }
    hfn_stream_function *f = &s->functions[index];
    char *name = copy_text(s, item->text, item->text_bytes);
    char *display = name ? make_readable(s, name) : NULL;
    if (!display) {
        hfn_free_memory(&s->env, name, item->text_bytes + 1u);
        return HOTFN_E_NO_MEMORY;
    }
    f->name = name;
    f->display = display;
    f->module = item->module;
    f->rva = item->rva;
    f->byte_count = item->byte_count;
    return HOTFN_OK;
}

static hotfn_status learn_module(hfn_stream *s, const hotfn_events_item *item)
{
    uint32_t index;
    hotfn_status status = find_module(s, item->module, &index);

    if (status != HOTFN_OK || s->modules[index].path) {
        return status;
    }
    hfn_stream_module *m = &s->modules[index];
    m->path = copy_text(s, item->text, item->text_bytes);
    m->flags = item->flags;
    m->id_kind = item->id_kind;
    m->id_bytes = item->id_bytes;
    if (item->id_bytes) {
        memcpy(m->id, item->id, item->id_bytes);
    }
    return m->path ? HOTFN_OK : HOTFN_E_NO_MEMORY;
}

static hotfn_status learn_run(hfn_stream *s, const hotfn_events_item *item,
                              const hfn_stream_report *to)
{
    hotfn_listener_event event = { .kind = HOTFN_EVENTS_RUN };

    if (s->command) {
        return HOTFN_OK;
    }
    s->command = copy_text(s, item->text, item->text_bytes);
    if (!s->command) {
        return HOTFN_E_NO_MEMORY;
    }
    replace_unprintable(s->command);
    s->pid = item->pid;
    s->start_ns = item->time_ns;
    event.name = s->command;
    report_event(s, to, &event);
    return HOTFN_OK;
}

/* ---- Calls. */

static bool keep_exit(hfn_stream *s, uint32_t thread, const hfn_stream_call *call, uint64_t time_ns)
{
    return !s->keeps || hfn_keep_exit(s, thread, call, time_ns);
}

/* The open calls are not known any more: end them at the thread's latest event, in the record
 * only. */
static bool forget_calls(hfn_stream *s, uint32_t thread)
{
    hfn_stream_thread *t = &s->threads[thread];
    bool ok = true;

    while (t->open_count > 0) {
        ok = keep_exit(s, thread, &t->open[--t->open_count], t->last_ns) && ok;
    }
    return ok;
}

static hotfn_status begin_thread(hfn_stream *s, const hotfn_events_item *item, uint32_t *thread)
{
    hotfn_status status = find_thread(s, item->thread, thread);
    bool ok = true;

    if (status != HOTFN_OK) {
        return status;
    }
    hfn_stream_thread *t = &s->threads[*thread];
    if (t->is_stale || t->outer_depth + t->open_count != item->depth) {
        ok = forget_calls(s, *thread);
        t->outer_depth = item->depth;
        t->charged_ns = 0;
        t->is_stale = false;
    }
    return ok ? HOTFN_OK : HOTFN_E_NO_MEMORY;
}

static hotfn_status enter_call(hfn_stream *s, uint32_t thread, uint32_t function,
                               const hfn_stream_report *to)
{
    hfn_stream_thread *t = &s->threads[thread];
    hfn_stream_call call = { .begin_ns = t->last_ns, .function = function };
    hotfn_listener_event event = { .kind = HOTFN_EVENTS_ENTRY,
                                   .thread = t->thread_id,
                                   .depth = t->outer_depth + (uint32_t)t->open_count,
                                   .time_ns = t->last_ns };

    to->stats->call_count++;
    report_call(s, to, &event, function);
    if (t->open_count >= HFN_STREAM_MAX_DEPTH) { /* not stored, so its exit will have no duration */
        t->outer_depth++;
        return HOTFN_OK;
    }
    if (!hfn_grow_array(&s->env, (void **)&t->open, &t->open_capacity, t->open_count + 1,
                        sizeof *t->open) ||
        (s->keeps && !hfn_keep_entry(s, thread, &call, t->last_ns))) {
        return HOTFN_E_NO_MEMORY;
    }
    t->open[t->open_count++] = call;
    return HOTFN_OK;
}

/* End the innermost open call, and report its exit. */
static bool leave_innermost(hfn_stream *s, uint32_t thread, const hfn_stream_report *to)
{
    hfn_stream_thread *t = &s->threads[thread];
    hfn_stream_call call = t->open[--t->open_count];
    hotfn_listener_event event = { .kind = HOTFN_EVENTS_EXIT,
                                   .thread = t->thread_id,
                                   .depth = t->outer_depth + (uint32_t)t->open_count,
                                   .time_ns = t->last_ns,
                                   .duration_ns = t->last_ns - call.begin_ns };

    report_call(s, to, &event, call.function);
    return keep_exit(s, thread, &call, t->last_ns);
}

/* The exit belongs to the innermost open call of its function; calls inside that one were left by a
 * jump or an exception.  If no call of the function is open, its entry was not received. */
static hotfn_status leave_call(hfn_stream *s, uint32_t thread, uint32_t function,
                               const hfn_stream_report *to)
{
    hfn_stream_thread *t = &s->threads[thread];
    size_t at = t->open_count;
    bool ok = true, is_open = false;

    while (at > 0 && !is_open) {
        is_open = t->open[--at].function == function;
    }
    while (ok && t->open_count > at) {
        ok = leave_innermost(s, thread, to);
    }
    if (!is_open) {
        t->outer_depth -= t->outer_depth > 0;
        hotfn_listener_event event = { .kind = HOTFN_EVENTS_EXIT,
                                       .thread = t->thread_id,
                                       .depth = t->outer_depth,
                                       .time_ns = t->last_ns,
                                       .duration_ns = HOTFN_NO_DURATION };
        report_call(s, to, &event, function);
    }
    return ok ? HOTFN_OK : HOTFN_E_NO_MEMORY;
}

static hotfn_status handle_call(hfn_stream *s, const hotfn_events_item *item, uint32_t thread,
                                const hfn_stream_report *to)
{
    hfn_stream_thread *t = &s->threads[thread];
    uint32_t function;
    hotfn_status status = find_function(s, item->function, &function);

    if (status != HOTFN_OK) {
        return status;
    }
    t->last_ns = item->time_ns > t->last_ns ? item->time_ns : t->last_ns;
    to->stats->event_count++;
    return item->kind == HOTFN_EVENTS_ENTRY ? enter_call(s, thread, function, to)
                                            : leave_call(s, thread, function, to);
}

/* ---- Datagrams. */

static void report_gap(hfn_stream *s, uint32_t kind, uint64_t count, const hfn_stream_report *to)
{
    hotfn_listener_event event = { .kind = kind, .count = count };

    for (size_t i = 0; i < s->thread_count; i++) {
        s->threads[i].is_stale = true;
    }
    report_event(s, to, &event);
}

/* Detect lost datagrams and skipped events since the first datagram that was received. */
static void check_gaps(hfn_stream *s, const hotfn_events_header *h, const hfn_stream_report *to)
{
    if (s->has_begun && h->sequence > s->next_sequence) {
        uint64_t lost = h->sequence - s->next_sequence;
        to->stats->lost_count += lost;
        report_gap(s, HOTFN_EVENTS_LOST, lost, to);
    }
    if (s->has_begun && h->skipped_count > s->skipped_count) {
        uint64_t skipped = h->skipped_count - s->skipped_count;
        to->stats->skipped_count += skipped;
        report_gap(s, HOTFN_EVENTS_SKIPPED, skipped, to);
    }
    s->has_begun = true;
    s->next_sequence = h->sequence + 1;
    s->skipped_count = h->skipped_count;
}

static void end_stream(hfn_stream *s, bool is_replaced, const hfn_stream_report *to)
{
    hotfn_listener_event event = { .kind =
                                       is_replaced ? HOTFN_EVENTS_EXECUTED : HOTFN_EVENTS_ENDED };

    s->has_ended = true;
    for (uint32_t i = 0; i < s->thread_count; i++) {
        forget_calls(s, i);
    }
    report_event(s, to, &event);
}

static hotfn_status handle_item(hfn_stream *s, const hotfn_events_item *item, uint32_t *thread,
                                const hfn_stream_report *to)
{
    switch (item->kind) {
    case HOTFN_EVENTS_THREAD: return begin_thread(s, item, thread);
    case HOTFN_EVENTS_FUNCTION: return learn_function(s, item);
    case HOTFN_EVENTS_MODULE: return learn_module(s, item);
    case HOTFN_EVENTS_RUN: return learn_run(s, item, to);
    default: return handle_call(s, item, *thread, to);
    }
}

hotfn_status hfn_stream_handle(hfn_stream *s, const hotfn_events_header *h, const void *bytes,
                               uint64_t byte_count, const hfn_stream_report *to)
{
    hotfn_events_item item = HOTFN_EVENTS_ITEM_INIT;
    hotfn_status status = HOTFN_OK;
    uint64_t offset = 0;
    uint32_t thread = 0;

    if (s->has_ended || (s->has_begun && h->sequence < s->next_sequence)) {
        return HOTFN_OK; /* it arrived late and was counted as lost, or it is a copy */
    }
    check_gaps(s, h, to);
    while (status == HOTFN_OK && hotfn_events_next(&item, &offset, bytes, byte_count) == HOTFN_OK) {
        status = handle_item(s, &item, &thread, to);
        item.size = sizeof item;
    }
    if (h->flags & HOTFN_EVENTS_END) {
        end_stream(s, (h->flags & HOTFN_EVENTS_REPLACED) != 0, to);
    }
    return status;
}
