/* SPDX-License-Identifier: MIT */
/* Prints events as an indented tree of calls.  An entry is held back for a moment: if the exit of
 * the same call follows, both are printed as one line with the duration. */
#include "listen.h"

#include <inttypes.h>
#include <string.h>

enum { MAX_INDENT = 40, INDENT_COLUMNS = 2 };

#define DIM "\033[2m"
#define BOLD "\033[1m"
#define GREEN "\033[32m"
#define SLOW "\033[1;31m"
#define PLAIN "\033[0m"

static const char *get_style(const listen_tree *t, const char *style)
{
    return t->view->color ? style : "";
}

/* Print what precedes a call in its line: time, thread (in a colour by its id), and indentation. */
static void print_line_start(const listen_tree *t, const hotfn_listener_event *e)
{
    uint32_t depth = e->depth < MAX_INDENT ? e->depth : MAX_INDENT;

    fprintf(t->view->out, "%s%12.3f ms%s ", get_style(t, DIM), (double)e->time_ns / 1e6,
            get_style(t, PLAIN));
    if (t->view->color) {
        fprintf(t->view->out, "\033[%um%8" PRIu32 "%s  ", 31 + (e->thread + 2) % 6, e->thread,
                PLAIN);
    } else {
        fprintf(t->view->out, "%8" PRIu32 "  ", e->thread);
    }
    fprintf(t->view->out, "%*s", (int)(depth * INDENT_COLUMNS), "");
}

static void print_duration(const listen_tree *t, const hotfn_listener_event *e)
{
    static const char *const units[] = { "ns", "us", "ms", "s" };
    bool is_slow = listen_is_slow(t->view, e);
    double value = (double)e->duration_ns;
    uint32_t unit = 0;

    if (e->duration_ns == HOTFN_NO_DURATION) {
        return;
    }
    for (; unit < 3 && value >= 1000; unit++) {
        value /= 1000;
    }
    fprintf(t->view->out, "  %s%.*f %s%s%s", get_style(t, is_slow ? SLOW : DIM),
            unit == 0     ? 0
            : value < 100 ? 2
                          : 1,
            value, units[unit], is_slow ? " slow" : "", get_style(t, PLAIN));
}

static void print_call(const listen_tree *t, const hotfn_listener_event *e, const char *before,
                       const char *name, const char *after)
{
    bool is_slow = e->kind == HOTFN_EVENTS_EXIT && listen_is_slow(t->view, e);

    print_line_start(t, e);
    fprintf(t->view->out, "%s%s%s%s%s", before, get_style(t, is_slow ? SLOW : BOLD), name,
            get_style(t, PLAIN), after);
    if (e->kind == HOTFN_EVENTS_EXIT) {
        print_duration(t, e);
    }
    fputc('\n', t->view->out);
}

void listen_print_held(listen_tree *t)
{
    if (t->has_held) {
        t->has_held = false;
        print_call(t, &t->held, "", t->held_name, " {");
    }
}

static void hold_entry(listen_tree *t, const hotfn_listener_event *e)
{
    t->has_held = true;
    t->held = *e;
    snprintf(t->held_name, sizeof t->held_name, "%s", e->name);
}

static void show_exit(listen_tree *t, const hotfn_listener_event *e)
{
    bool is_leaf = t->has_held && t->held.stream == e->stream && t->held.thread == e->thread &&
                   t->held.depth == e->depth && t->held.function == e->function;

    if (is_leaf) {
        hotfn_listener_event whole = *e;
        whole.time_ns = t->held.time_ns;
        t->has_held = false;
        print_call(t, &whole, "", e->name, "");
        return;
    }
    listen_print_held(t);
    print_call(t, e, "} ", e->name, "");
}

static void show_stream_event(listen_tree *t, const hotfn_listener_event *e)
{
    FILE *out = t->view->out;

    fputs(
        get_style(t, e->kind == HOTFN_EVENTS_LOST || e->kind == HOTFN_EVENTS_SKIPPED ? SLOW : DIM),
        out);
    switch (e->kind) {
    case HOTFN_EVENTS_RUN:
        fprintf(out, "-- stream %" PRIu32 ": %s (process %" PRIu32 ")", e->stream, e->name, e->pid);
        break;
    case HOTFN_EVENTS_LOST:
        fprintf(out, "-- stream %" PRIu32 ": %" PRIu64 " datagrams lost", e->stream, e->count);
        break;
    case HOTFN_EVENTS_SKIPPED:
        fprintf(out, "-- stream %" PRIu32 ": %" PRIu64 " events were not sent", e->stream,
                e->count);
        break;
    case HOTFN_EVENTS_EXECUTED:
        fprintf(out, "-- stream %" PRIu32 " has executed another program", e->stream);
        break;
    default: fprintf(out, "-- stream %" PRIu32 " has ended", e->stream); break;
    }
    fprintf(out, "%s\n", get_style(t, PLAIN));
}

/* An event of an object has no length: its entry is shown, its exit is not. */
static void show_object_event(listen_tree *t, const hotfn_listener_event *e,
                              listen_object_event what)
{
    static const char *const marks[] = { "", "+ ", "- ", "! " };
    static const char *const styles[] = { "", GREEN, DIM, SLOW };

    if (e->kind == HOTFN_EVENTS_ENTRY) {
        listen_print_held(t);
        print_line_start(t, e);
        fprintf(t->view->out, "%s%s%s%s\n", get_style(t, styles[what]), marks[what], e->name,
                get_style(t, PLAIN));
    }
}

void listen_show_event(listen_tree *t, const hotfn_listener_event *e)
{
    bool is_call = e->kind == HOTFN_EVENTS_ENTRY || e->kind == HOTFN_EVENTS_EXIT;
    listen_object_event what = is_call ? listen_get_object_event(e->name) : LISTEN_NO_OBJECT;

    if (is_call && !listen_shows_function(t->view, e->name)) {
        return;
    }
    if (what != LISTEN_NO_OBJECT) {
        show_object_event(t, e, what);
        return;
    }
    if (e->kind == HOTFN_EVENTS_EXIT) {
        show_exit(t, e);
        return;
    }
    listen_print_held(t);
    if (is_call) {
        hold_entry(t, e);
    } else {
        show_stream_event(t, e);
    }
}
