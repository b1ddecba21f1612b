/* SPDX-License-Identifier: MIT */
/* Perfetto's trace format (perfetto.dev, protos/perfetto/trace): a stream of packets.  Each thread
 * has a track, each call is a slice with a begin and an end event, and an event refers to its name
 * by number. */
#include "exporters/events.h"
#include "exporters/protobuf.h"

#include <stdio.h>

enum { /* fields */
       TRACE_PACKET = 1,
       PACKET_TIMESTAMP = 8,
       PACKET_SEQUENCE = 10,
       PACKET_TRACK_EVENT = 11,
       PACKET_INTERNED = 12,
       PACKET_SEQUENCE_FLAGS = 13,
       PACKET_TRACK = 60,
       EVENT_TYPE = 9,
       EVENT_NAME = 10,
       EVENT_TRACK = 11,
       INTERNED_NAMES = 2,
       TRACK_UUID = 1,
       TRACK_NAME = 2,
       TRACK_PROCESS = 3,
       TRACK_THREAD = 4,
       TRACK_PARENT = 5,
};
/* Sequence flags: the names of earlier packets are forgotten; this packet refers to names. */
#define CLEARED 1u
#define NEEDS_NAMES 2u
#define PROCESS_TRACK 1u

typedef struct perfetto {
    const hfn_view *view;
    hfn_sink *sink;
    hfn_message packet, part, inner;
    uint8_t *known; /* functions whose names were sent */
    bool ok;
    char shown[8192];
} perfetto;

static void send_packet(perfetto *p, uint32_t flags)
{
    hfn_message_number(&p->packet, PACKET_SEQUENCE, 1);
    hfn_message_number(&p->packet, PACKET_SEQUENCE_FLAGS, flags);
    p->ok = hfn_message_send(&p->packet, TRACE_PACKET, p->sink) && p->ok;
}

static void put_process(perfetto *p)
{
    hfn_message_clear(&p->inner);
    hfn_message_number(&p->inner, 1, p->view->info.pid);
    hfn_message_text(&p->inner, 6, p->view->info.command);
    hfn_message_clear(&p->part);
    hfn_message_number(&p->part, TRACK_UUID, PROCESS_TRACK);
    hfn_message_inner(&p->part, TRACK_PROCESS, &p->inner);
    hfn_message_inner(&p->packet, PACKET_TRACK, &p->part);
    send_packet(p, CLEARED | NEEDS_NAMES);
}

static uint64_t track_of(uint32_t thread)
{
    return PROCESS_TRACK + 1ull + thread;
}

static void put_thread(perfetto *p, uint32_t thread)
{
    hotfn_record_thread t;
    char name[sizeof t.name + 1];
    hfn_view_thread(p->view, thread, &t);
    snprintf(name, sizeof name, "%.16s", t.name);
    hfn_message_clear(&p->inner);
    hfn_message_number(&p->inner, 1, t.pid);
    hfn_message_number(&p->inner, 2, t.tid);
    hfn_message_text(&p->inner, 5, name);
    hfn_message_clear(&p->part);
    hfn_message_number(&p->part, TRACK_UUID, track_of(thread));
    hfn_message_inner(&p->part, TRACK_THREAD, &p->inner);
    hfn_message_number(&p->part, TRACK_PARENT, PROCESS_TRACK);
    hfn_message_inner(&p->packet, PACKET_TRACK, &p->part);
    send_packet(p, NEEDS_NAMES);
}

/* Define a function's name in the first packet that refers to it. */
static void put_name(perfetto *p, uint32_t function)
{
    hotfn_record_function f;
    hfn_view_function(p->view, function, &f);
    hfn_message_clear(&p->inner);
    hfn_message_number(&p->inner, 1, function + 1ull);
    hfn_message_text(&p->inner, 2, hfn_view_display(p->view, &f, p->shown, sizeof p->shown));
    hfn_message_clear(&p->part);
    hfn_message_inner(&p->part, INTERNED_NAMES, &p->inner);
    hfn_message_inner(&p->packet, PACKET_INTERNED, &p->part);
    p->known[function] = 1;
}

static void put_event(void *user, const hotfn_record_event *e)
{
    perfetto *p = user;
    if (p->sink->failed) {
        return;
    }
    hfn_message_number(&p->packet, PACKET_TIMESTAMP, e->time_ns);
    if (e->kind == 1 && !p->known[e->function]) {
        put_name(p, e->function);
    }
    hfn_message_clear(&p->part);
    hfn_message_number(&p->part, EVENT_TYPE, e->kind);
    if (e->kind == 1) {
        hfn_message_number(&p->part, EVENT_NAME, e->function + 1ull);
    }
    hfn_message_number(&p->part, EVENT_TRACK, track_of(e->thread));
    hfn_message_inner(&p->packet, PACKET_TRACK_EVENT, &p->part);
    send_packet(p, NEEDS_NAMES);
}

static bool write_perfetto(const hfn_view *view, hfn_sink *sink)
{
    perfetto *p = hfn_allocate_zeroed(&view->env, sizeof *p);
    if (!p) {
        return false;
    }
    p->view = view;
    p->sink = sink;
    p->known = hfn_allocate_zeroed(&view->env, view->info.function_count);
    p->ok = p->known != NULL;
    hfn_message_init(&p->packet, &view->env);
    hfn_message_init(&p->part, &view->env);
    hfn_message_init(&p->inner, &view->env);
    if (p->ok) {
        put_process(p);
        for (uint32_t i = 0; i < view->info.thread_count; i++) {
            put_thread(p, i);
        }
        hfn_events_each(view, put_event, p);
    }
    bool ok = p->ok;
    hfn_message_finish(&p->packet);
    hfn_message_finish(&p->part);
    hfn_message_finish(&p->inner);
    hfn_free_memory(&view->env, p->known, view->info.function_count);
    hfn_free_memory(&view->env, p, sizeof *p);
    return ok;
}

const hfn_exporter hfn_exporter_perfetto = {
    .name = "perfetto",
    .extension = ".pftrace",
    .about = "each call on a time line: ui.perfetto.dev, trace_processor",
    .needs = HOTFN_NEEDS_TIMES | HOTFN_NEEDS_EVENTS,
    .write = write_perfetto,
};
