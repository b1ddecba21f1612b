/* SPDX-License-Identifier: MIT */
/* The events of the page of a record: for each thread a list with two numbers for each event, a
 * function for an entry or -1 for the exit of the innermost call, and the nanoseconds since the
 * event before it (at first: since the start of the run). */
#include "exporters/events.h"
#include "exporters/html_data.h"

/* All threads together.  If a record has more events, each thread keeps its last MAX_EVENTS divided
 * by the number of threads. */
#define MAX_EVENTS 1000000u

typedef struct listing {
    hfn_page *page;
    uint64_t *counts; /* by thread: its events; the second pass counts them down */
    uint64_t limit, last_ns;
    uint32_t thread;
    bool is_open;
} listing;

static void count_event(void *user, const hotfn_record_event *e)
{
    listing *l = user;
    l->counts[e->thread]++;
}

static void end_thread(listing *l)
{
    if (l->is_open) {
        hotfn_json_end(l->page->out);
        hotfn_json_end(l->page->out);
    }
    l->is_open = false;
}

static void begin_thread(listing *l, uint32_t thread)
{
    end_thread(l);
    hotfn_json_begin_object(l->page->out, NULL);
    hotfn_json_write(l->page->out, "thread", hotfn_json_create_number(thread));
    hotfn_json_begin_array(l->page->out, "events");
    l->thread = thread;
    l->last_ns = 0;
    l->is_open = true;
}

static void write_event(void *user, const hotfn_record_event *e)
{
    listing *l = user;
    if (l->counts[e->thread]-- > l->limit) {
        l->page->omitted_events++;
        return;
    }
    if (!l->is_open || l->thread != e->thread) {
        begin_thread(l, e->thread);
    }
    hotfn_json_write(l->page->out, NULL,
                     e->kind == 1 ? hfn_page_create_rank(l->page, e->function)
                                  : hotfn_json_create_signed(-1));
    hotfn_json_write(l->page->out, NULL, hotfn_json_create_number(e->time_ns - l->last_ns));
    l->last_ns = e->time_ns;
}

void hfn_page_write_events(hfn_page *p)
{
    uint32_t threads = p->view->info.thread_count;
    size_t bytes = threads * sizeof(uint64_t);
    listing l = { .page = p, .counts = hfn_allocate_zeroed(&p->view->env, bytes) };
    hotfn_json_begin_array(p->out, "threads");
    if (!l.counts) {
        hotfn_json_write(p->out, NULL, NULL); /* the writer reports that there is no memory */
    } else {
        l.limit = MAX_EVENTS / (threads ? threads : 1);
        hfn_events_each(p->view, count_event, &l);
        hfn_events_each(p->view, write_event, &l);
        end_thread(&l);
    }
    hotfn_json_end(p->out);
    hotfn_json_write(p->out, "omitted", hotfn_json_create_number(p->omitted_events));
    hfn_free_memory(&p->view->env, l.counts, bytes);
}
