/* SPDX-License-Identifier: MIT */
/* One line of JSON for each event.  hotfn_json_writer is not used, because it writes one document
 * on many lines. */
#include "listen.h"

#include <inttypes.h>

/* Only quotes and backslashes need an escape: the library has replaced control characters. */
static void print_text(FILE *out, const char *key, const char *text)
{
    fprintf(out, ",\"%s\":\"", key);
    for (const char *c = text; *c; c++) {
        if (*c == '"' || *c == '\\') {
            fputc('\\', out);
        }
        fputc(*c, out);
    }
    fputc('"', out);
}

static void print_call(const listen_view *v, const hotfn_listener_event *e)
{
    static const char *const objects[] = { "", "created", "released", "failed" };
    listen_object_event what = listen_get_object_event(e->name);
    bool is_exit = e->kind == HOTFN_EVENTS_EXIT;

    if (what != LISTEN_NO_OBJECT && is_exit) {
        return; /* it has no length */
    }
    fprintf(v->out,
            "{\"event\":\"%s\",\"stream\":%" PRIu32 ",\"pid\":%" PRIu32 ",\"thread\":%" PRIu32
            ",\"depth\":%" PRIu32 ",\"time_ns\":%" PRIu64,
            what != LISTEN_NO_OBJECT ? objects[what]
            : is_exit                ? "exit"
                                     : "entry",
            e->stream, e->pid, e->thread, e->depth, e->time_ns);
    print_text(v->out, "function", e->name);
    if (is_exit && e->duration_ns == HOTFN_NO_DURATION) {
        fputs(",\"duration_ns\":null", v->out);
    } else if (is_exit) {
        fprintf(v->out, ",\"duration_ns\":%" PRIu64, e->duration_ns);
    }
    if (is_exit && v->slow_ns) {
        fprintf(v->out, ",\"slow\":%s", listen_is_slow(v, e) ? "true" : "false");
    }
    fputs("}\n", v->out);
}

void listen_print_json(const listen_view *v, const hotfn_listener_event *e)
{
    const char *name = e->kind == HOTFN_EVENTS_RUN        ? "stream"
                       : e->kind == HOTFN_EVENTS_LOST     ? "lost"
                       : e->kind == HOTFN_EVENTS_SKIPPED  ? "skipped"
                       : e->kind == HOTFN_EVENTS_EXECUTED ? "executed"
                                                          : "ended";

    if (e->kind == HOTFN_EVENTS_ENTRY || e->kind == HOTFN_EVENTS_EXIT) {
        if (listen_shows_function(v, e->name)) {
            print_call(v, e);
        }
        return;
    }
    fprintf(v->out, "{\"event\":\"%s\",\"stream\":%" PRIu32 ",\"pid\":%" PRIu32, name, e->stream,
            e->pid);
    if (e->kind == HOTFN_EVENTS_RUN) {
        print_text(v->out, "command", e->name);
    } else if (e->kind == HOTFN_EVENTS_LOST || e->kind == HOTFN_EVENTS_SKIPPED) {
        fprintf(v->out, ",\"count\":%" PRIu64, e->count);
    }
    fputs("}\n", v->out);
}

void listen_print_json_summary(const listen_view *v, const hotfn_listener_stats *s)
{
    fprintf(v->out,
            "{\"event\":\"summary\",\"streams\":%" PRIu32 ",\"events\":%" PRIu64
            ",\"calls\":%" PRIu64 ",\"lost_datagrams\":%" PRIu64 ",\"skipped_events\":%" PRIu64
            ",\"malformed_datagrams\":%" PRIu64 "}\n",
            s->stream_count, s->event_count, s->call_count, s->lost_count, s->skipped_count,
            s->malformed_count);
}
