/* SPDX-License-Identifier: MIT */
/*
 * Holds the events of a watched method's call back until the call has taken longer than the limit.
 * The states of a thread:
 *
 *     outside --entry of a watched method--> holding --limit passed--> storing
 *        ^                                      |                         |
 *        +--------- its exit (held: dropped) ---+---------- its exit -----+
 *
 * Exits are stored only together with their entries, so that the trace stays balanced: where the
 * room for held events ends, calls are skipped as a whole.
 */
#include "runtimes/art_watch.h"

#include "os/os.h"

enum {
    MAX_THREADS = 1024, /* a power of two */
    MAX_PROBES = 16,
    MAX_HELD = 16384, /* events of a thread */
};

typedef struct watched_thread {
    uint64_t thread; /* atomic; 0: free */
    uint64_t trace, begin_ns;
    hfn_art_event *held; /* MAX_HELD, mapped at the first watched call */
    uint32_t held_count;
    uint32_t open_count;    /* calls of which only the entry is held  */
    uint32_t skipped_depth; /* nested calls that are skipped          */
    uint32_t watched_depth; /* nested calls of watched methods; 0: outside */
    bool is_storing;
} watched_thread;

static watched_thread *threads;

bool hfn_art_watch_open(void)
{
    if (!threads) {
        threads = hfn_os_map_pages(MAX_THREADS * sizeof *threads);
    }
    return threads != NULL;
}

/* NULL: there is no room. */
static watched_thread *find_thread(uint64_t thread)
{
    uint32_t at = (uint32_t)(thread * UINT64_C(0x9E3779B97F4A7C15) >> 40);

    for (uint32_t i = 0; i < MAX_PROBES; i++) {
        watched_thread *t = &threads[(at + i) % MAX_THREADS];
        uint64_t before = __atomic_load_n(&t->thread, __ATOMIC_RELAXED);

        /* Only the thread itself uses the entry, so nothing is published by the exchange. */
        if (before == thread ||
            (before == 0 && (__atomic_compare_exchange_n(&t->thread, &before, thread, false,
                                                         __ATOMIC_RELAXED, __ATOMIC_RELAXED) ||
                             before == thread))) {
            return t;
        }
    }
    return NULL;
}

/* ---- Held events. */

static void begin_call(const hfn_art_sink *sink, watched_thread *t, uint64_t trace)
{
    if (!t->held) {
        t->held = hfn_os_map_pages(MAX_HELD * sizeof *t->held);
    }
    t->trace = trace;
    t->begin_ns = sink->get_ns();
    t->held_count = t->open_count = t->skipped_depth = t->watched_depth = 0;
    t->is_storing = false;
}

static bool has_room(const watched_thread *t)
{
    return t->held && t->held_count + t->open_count + 2 <= MAX_HELD;
}

/* True if the event belongs to a call that is skipped as a whole. */
static bool is_skipped(watched_thread *t, const hfn_art_event *event)
{
    if (!event->is_enter && t->skipped_depth > 0) {
        t->skipped_depth--;
        return true;
    }
    if (!event->is_enter) {
        return !t->is_storing && t->open_count == 0;
    }
    if (t->skipped_depth > 0 || (!t->is_storing && !has_room(t))) {
        t->skipped_depth++;
        return true;
    }
    return false;
}

static void hold_event(watched_thread *t, const hfn_art_event *event)
{
    t->held[t->held_count++] = *event;
    t->open_count += event->is_enter ? 1 : UINT32_MAX;
}

static void store_held(const hfn_art_sink *sink, watched_thread *t)
{
    for (uint32_t i = 0; i < t->held_count; i++) {
        sink->store(&t->held[i]);
    }
    t->held_count = 0;
    t->is_storing = true;
}

static void pass_inside(const hfn_art_sink *sink, watched_thread *t, const hfn_art_event *event)
{
    if (is_skipped(t, event)) {
        sink->drop(1);
    } else if (t->is_storing) {
        sink->store(event);
    } else {
        hold_event(t, event);
    }
    if (!t->is_storing && sink->get_ns() - t->begin_ns > sink->limit_ns) {
        store_held(sink, t);
    }
}

/* ---- Events. */

bool hfn_art_watch_pass(const hfn_art_sink *sink, const hfn_art_event *event)
{
    watched_thread *t = find_thread(event->thread);

    if (t && t->watched_depth > 0 && t->trace != event->trace) { /* another trace has begun */
        sink->drop(t->held_count);
        t->watched_depth = 0;
    }
    if (t && t->watched_depth == 0 && event->is_enter && event->is_watched) {
        begin_call(sink, t, event->trace);
    } else if (!t || t->watched_depth == 0) {
        sink->drop(1);
        return false;
    }
    t->watched_depth += event->is_watched && event->is_enter;
    pass_inside(sink, t, event);
    if (event->is_watched && !event->is_enter && --t->watched_depth == 0 && !t->is_storing) {
        sink->drop(t->held_count);
    }
    return true;
}
