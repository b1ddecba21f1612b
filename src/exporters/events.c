/* SPDX-License-Identifier: MIT */
/* Pairing entries with exits.  An exit belongs to the innermost open entry of its function.  Calls
 * that are still open inside it were left by a longjmp or an exception, and end at the same
 * time. */
#include "exporters/events.h"

#define MAX_DEPTH 4096u /* both events of a deeper call are skipped */

typedef struct pairing {
    hfn_event_fn each;
    void *user;
    uint32_t open[MAX_DEPTH];
    uint32_t depth, thread, too_deep;
    uint64_t last_ns;
} pairing;

static void end_innermost(pairing *p)
{
    hotfn_record_event e = HOTFN_RECORD_EVENT_INIT;
    e.thread = p->thread;
    e.function = p->open[--p->depth];
    e.kind = 2;
    e.time_ns = p->last_ns;
    p->each(p->user, &e);
}

static bool is_open(const pairing *p, uint32_t function)
{
    for (uint32_t i = p->depth; i-- > 0;) {
        if (p->open[i] == function) {
            return true;
        }
    }
    return false;
}

static void handle_event(pairing *p, const hotfn_record_event *e)
{
    p->last_ns = e->time_ns > p->last_ns ? e->time_ns : p->last_ns;
    if (e->kind == 1 && p->depth == MAX_DEPTH) {
        p->too_deep++;
    } else if (e->kind == 1) {
        hotfn_record_event at = *e;
        at.time_ns = p->last_ns;
        p->open[p->depth++] = e->function;
        p->each(p->user, &at);
    } else if (p->too_deep > 0) {
        p->too_deep--;
    } else if (is_open(p, e->function)) {
        while (p->open[p->depth - 1] != e->function) {
            end_innermost(p);
        }
        end_innermost(p);
    }
}

void hfn_events_each(const hfn_view *view, hfn_event_fn each, void *user)
{
    hotfn_record_event e = HOTFN_RECORD_EVENT_INIT;
    pairing p = { .each = each, .user = user };
    for (uint64_t i = 0; i < view->time.event_count; i++) {
        hfn_view_reach(view, i, view->time.event_count);
        hotfn_record_get_event(view->record, i, &e);
        if (e.function == HOTFN_NO_FUNCTION) {
            continue;
        }
        if (e.thread != p.thread) {
            while (p.depth > 0) {
                end_innermost(&p);
            }
            p.thread = e.thread;
            p.last_ns = p.too_deep = 0;
        }
        handle_event(&p, &e);
    }
    while (p.depth > 0) {
        end_innermost(&p);
    }
}
