/* SPDX-License-Identifier: MIT */
/* What a listener stores of a stream to make a record of it later: the call tree of each thread,
 * with the calls and the self time of each node, and the latest events of each thread. */
#include "events/stream.h"

#include <string.h>

#define CACHE_BITS 14
#define FIRST_EVENTS 256u

static uint32_t *get_cached_node(const hfn_stream *s, uint32_t parent, uint32_t function)
{
    uint32_t hash = parent * 0x9e3779b1u + function * 0x85ebca6bu;

    return &s->node_cache[hash >> (32 - CACHE_BITS)];
}

/* Add a node and return its index + 1.  Returns 0 if the tree is full, or if there is no memory, in
 * which case *ok is set to false. */
static uint32_t add_node(hfn_stream *s, uint32_t parent, uint32_t function, uint32_t thread,
                         bool *ok)
{
    uint32_t index = (uint32_t)s->node_count;

    if (s->node_count >= HFN_STREAM_MAX_NODES) {
        return 0;
    }
    if (!hfn_grow_array(&s->env, (void **)&s->nodes, &s->node_capacity, s->node_count + 1,
                        sizeof *s->nodes)) {
        *ok = false;
        return 0;
    }
    s->nodes[s->node_count++] = (hfn_stream_node){ .parent = parent == UINT32_MAX ? index : parent,
                                                   .function = function,
                                                   .thread = thread };
    if (parent != UINT32_MAX) {
        s->nodes[index].next_sibling = s->nodes[parent].first_child;
        s->nodes[parent].first_child = index + 1;
    }
    return index + 1;
}

/* Find or add a node's child for a function.  Returns its index + 1, or 0 as add_node does. */
static uint32_t find_child(hfn_stream *s, uint32_t parent, uint32_t function, bool *ok)
{
    uint32_t *cached = get_cached_node(s, parent, function);

    if (*cached && s->nodes[*cached - 1].parent == parent &&
        s->nodes[*cached - 1].function == function) {
        return *cached;
    }
    for (uint32_t at = s->nodes[parent].first_child; at; at = s->nodes[at - 1].next_sibling) {
        if (s->nodes[at - 1].function == function) {
            *cached = at;
            return at;
        }
    }
    uint32_t added = add_node(s, parent, function, s->nodes[parent].thread, ok);
    *cached = added ? added : *cached;
    return added;
}

static bool prepare_thread(hfn_stream *s, uint32_t thread, uint64_t time_ns)
{
    hfn_stream_thread *t = &s->threads[thread];
    bool ok = true;

    if (!s->node_cache) {
        s->node_cache = hfn_allocate_zeroed(&s->env, sizeof *s->node_cache << CACHE_BITS);
    }
    if (s->node_cache && !t->root) {
        t->root = add_node(s, UINT32_MAX, UINT32_MAX, thread, &ok);
        t->first_ns = time_ns;
    }
    return s->node_cache && ok;
}

/* Append an event to the thread's ring, which grows until it has its full size. */
static bool put_event(hfn_stream *s, hfn_stream_thread *t, uint32_t kind, uint32_t function,
                      uint64_t time_ns)
{
    if (t->event_count >= t->event_capacity && t->event_capacity < HFN_STREAM_KEPT_EVENTS) {
        size_t larger = t->event_capacity ? t->event_capacity * 2 : FIRST_EVENTS;
        void *memory = hfn_resize_memory(&s->env, t->events, t->event_capacity * sizeof *t->events,
                                         larger * sizeof *t->events);
        if (!memory) {
            return false;
        }
        t->events = memory;
        t->event_capacity = larger;
    }
    t->events[t->event_count++ & (t->event_capacity - 1)] =
        (hfn_time_event){ .ticks = time_ns, .slot = function, .kind = kind };
    return true;
}

/* The node of the innermost open call, or the root, as index + 1; 0: none. */
static uint32_t get_place(const hfn_stream_thread *t, size_t depth)
{
    return depth > 0 ? t->open[depth - 1].node : t->root;
}

/* Add the time since the thread's latest event to the self time of a node. */
static void charge_place(hfn_stream *s, hfn_stream_thread *t, uint32_t place, uint64_t time_ns)
{
    if (place && t->charged_ns && time_ns > t->charged_ns) {
        s->nodes[place - 1].self_ns += time_ns - t->charged_ns;
    }
    t->charged_ns = time_ns;
}

bool hfn_keep_entry(hfn_stream *s, uint32_t thread, hfn_stream_call *call, uint64_t time_ns)
{
    hfn_stream_thread *t = &s->threads[thread];
    bool ok = prepare_thread(s, thread, time_ns);

    if (!ok) {
        return false;
    }
    uint32_t place = get_place(t, t->open_count);
    charge_place(s, t, place, time_ns);
    call->node = place ? find_child(s, place - 1, call->function, &ok) : 0;
    if (call->node) {
        s->nodes[call->node - 1].calls++;
    } else {
        s->dropped_calls++;
    }
    return ok && put_event(s, t, HOTFN_EVENTS_ENTRY, call->function, time_ns);
}

bool hfn_keep_exit(hfn_stream *s, uint32_t thread, const hfn_stream_call *call, uint64_t time_ns)
{
    hfn_stream_thread *t = &s->threads[thread];
    uint64_t length = time_ns - call->begin_ns;

    charge_place(s, t, call->node, time_ns);
    if (call->node && length > s->nodes[call->node - 1].max_ns) {
        s->nodes[call->node - 1].max_ns = length;
    }
    return put_event(s, t, HOTFN_EVENTS_EXIT, call->function, time_ns);
}

void hfn_keep_free(hfn_stream *s)
{
    for (size_t i = 0; i < s->thread_count; i++) {
        hfn_free_memory(&s->env, s->threads[i].events,
                        s->threads[i].event_capacity * sizeof *s->threads[i].events);
    }
    hfn_free_memory(&s->env, s->nodes, s->node_capacity * sizeof *s->nodes);
    hfn_free_memory(&s->env, s->node_cache,
                    s->node_cache ? sizeof *s->node_cache << CACHE_BITS : 0);
}
