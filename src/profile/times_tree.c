/* SPDX-License-Identifier: MIT */
/* Queries for edges, nodes, slow calls and events, and for the times of the whole run. */
#include "base/search.h"
#include "base/status.h"
#include "profile/profile.h"

static uint32_t get_function(const hotfn_record *r, uint32_t slot)
{
    return slot < r->slot_count ? r->slot_functions[slot] : HOTFN_NO_FUNCTION;
}

/* A record without a call tree may still have nodes, which hold the allocations of functions; they
 * are hidden. */
static uint32_t get_node_count(const hotfn_record *r)
{
    return r->times.header.flags & HOTFN_TIMING_TREE ? r->times.node_count : 0;
}

hotfn_status hotfn_record_get_edge(const hotfn_record *r, uint32_t index, hotfn_record_edge *out)
{
    if (!r) {
        return HOTFN_E_OPTION;
    }

    hotfn_record_edge e = HOTFN_RECORD_EDGE_INIT;
    const hfn_edge_sum *sum;

    if (index >= r->sums->edge_count) {
        return HOTFN_E_NOT_FOUND;
    }
    sum = &r->sums->edges[index];
    e.caller = get_function(r, sum->caller);
    e.callee = get_function(r, sum->callee);
    e.flags = sum->flags;
    e.total_alloc = sum->total_alloc;
    e.calls = sum->calls;
    e.total_ns = hfn_times_ns(r, sum->total_ticks);
    return hfn_copy_result(out, &e, sizeof e);
}

static uint64_t get_self_ticks(const hotfn_record *r, uint32_t node)
{
    const hfn_node_sum *nodes = r->sums->nodes;
    uint64_t ticks = r->times.nodes[node].total_ticks - r->times.nodes[node].waited_ticks;

    for (uint32_t i = nodes[node].first_child; i != UINT32_MAX; i = nodes[i].next_sibling) {
        uint64_t below = r->times.nodes[i].total_ticks;
        ticks -= below < ticks ? below : ticks;
    }
    return ticks;
}

hotfn_status hotfn_record_get_node(const hotfn_record *r, uint32_t index, hotfn_record_node *out)
{
    if (!r) {
        return HOTFN_E_OPTION;
    }

    hotfn_record_node n = HOTFN_RECORD_NODE_INIT;
    const hfn_time_node *node;

    if (index >= get_node_count(r)) {
        return HOTFN_E_NOT_FOUND;
    }
    node = &r->times.nodes[index];
    n.parent = node->parent;
    n.function = get_function(r, node->slot);
    n.thread = hfn_record_row_shown_as(r, node->thread);
    n.flags = node->flags & HOTFN_NODE_MERGED;
    if (r->sums->nodes[index].is_chosen) {
        n.calls = node->calls;
        n.total_ns = hfn_times_ns(r, node->total_ticks);
        n.self_ns = hfn_times_ns(r, get_self_ticks(r, index));
        n.waited_ns = hfn_times_ns(r, node->waited_ticks);
        if (r->times.allocs) {
            n.self_alloc = r->times.allocs[index];
        }
    }
    return hfn_copy_result(out, &n, sizeof n);
}

/* Ticks of the clock as nanoseconds since the run's start; 0 if the clock started later. */
static uint64_t convert_to_ns_since_start(const hotfn_record *r, uint64_t ticks)
{
    uint64_t start = r->times.header.start_ticks;

    return ticks > start ? hfn_times_ns(r, ticks - start) : 0;
}

/* The index-th slow call of the shown threads; slow_count if there is none. */
static uint32_t find_shown_slow_call(const hotfn_record *r, uint32_t index)
{
    if (hfn_record_shows_all(r)) {
        return index;
    }
    for (uint32_t i = 0; i < r->times.slow_count; i++) {
        if (hfn_record_row_is_shown(r, r->times.slow[i].thread) && index-- == 0) {
            return i;
        }
    }
    return r->times.slow_count;
}

static uint32_t count_shown_slow_calls(const hotfn_record *r)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < r->times.slow_count; i++) {
        count += hfn_record_row_is_shown(r, r->times.slow[i].thread);
    }
    return count;
}

hotfn_status hotfn_record_get_slow_call(const hotfn_record *r, uint32_t index,
                                        hotfn_record_slow_call *out)
{
    if (!r) {
        return HOTFN_E_OPTION;
    }

    hotfn_record_slow_call s = HOTFN_RECORD_SLOW_CALL_INIT;
    const hfn_slow_call *call;

    index = find_shown_slow_call(r, index);
    if (index >= r->times.slow_count) {
        return HOTFN_E_NOT_FOUND;
    }
    call = &r->times.slow[index];
    s.function = get_function(r, call->slot);
    s.thread = hfn_record_row_shown_as(r, call->thread);
    s.node = call->node < get_node_count(r) ? call->node : HOTFN_NO_NODE;
    s.start_ns = convert_to_ns_since_start(r, call->start_ticks);
    s.duration_ns = hfn_times_ns(r, call->ticks);
    return hfn_copy_result(out, &s, sizeof s);
}

/* The thread that the event at index belongs to. */
static uint32_t find_thread_of_event(const hfn_times *t, uint64_t index)
{
    return (uint32_t)hfn_count_up_to(t->event_ends, t->thread_count, sizeof *t->event_ends, 0,
                                     index);
}

static uint64_t count_events(const hfn_times *t, uint32_t thread)
{
    return t->event_ends[thread] - (thread > 0 ? t->event_ends[thread - 1] : 0);
}

/* The index-th event of the shown threads; event_count if there is none. */
static uint64_t find_shown_event(const hotfn_record *r, uint64_t index)
{
    const hfn_times *t = &r->times;

    if (hfn_record_shows_all(r) || t->event_count == 0) {
        return index;
    }
    for (uint32_t thread = 0; thread < t->thread_count; thread++) {
        if (!hfn_record_row_is_shown(r, thread)) {
            continue;
        }
        if (index < count_events(t, thread)) {
            return t->event_ends[thread] - count_events(t, thread) + index;
        }
        index -= count_events(t, thread);
    }
    return t->event_count;
}

hotfn_status hotfn_record_get_event(const hotfn_record *r, uint64_t index, hotfn_record_event *out)
{
    if (!r) {
        return HOTFN_E_OPTION;
    }

    hotfn_record_event e = HOTFN_RECORD_EVENT_INIT;

    index = find_shown_event(r, index);
    if (index >= r->times.event_count) {
        return HOTFN_E_NOT_FOUND;
    }
    e.thread = hfn_record_row_shown_as(r, find_thread_of_event(&r->times, index));
    e.function = get_function(r, r->times.events[index].slot);
    e.kind = r->times.events[index].kind;
    e.time_ns = convert_to_ns_since_start(r, r->times.events[index].ticks);
    return hfn_copy_result(out, &e, sizeof e);
}

uint64_t hfn_record_busy_ns(const hotfn_record *r, uint32_t row)
{
    return r->times.present && row < r->times.thread_count
               ? hfn_times_ns(r, r->times.threads[row].busy_ticks)
               : 0;
}

uint64_t hfn_record_waited_ns(const hotfn_record *r, uint32_t row)
{
    const hfn_time_entry *all = r->times.entries; /* by thread */
    const size_t bytes = sizeof *all, thread_at = offsetof(hfn_time_entry, thread);
    size_t i = all ? hfn_count_below_u32(all, r->times.entry_count, bytes, thread_at, row) : 0;
    uint64_t ticks = 0;

    for (; i < r->times.entry_count && all[i].thread == row; i++) {
        ticks += all[i].cell.waited_ticks;
    }
    return ticks > 0 ? hfn_times_ns(r, ticks) : 0;
}

static double convert_cost_to_ns(const hotfn_record *r, uint32_t cost)
{
    return (double)cost / 256 * 1e9 / (double)r->times.header.ticks_per_second;
}

/* The expected length of the tick interval at a random moment: the sum of the squared intervals
 * divided by their sum. */
double hfn_times_tick_error_ns(const hfn_time_header *h)
{
    double measured = (double)h->tick_sum - (double)h->missing_ticks;
    double squares = (double)h->tick_squares * (1u << HFN_TICK_SQUARE_SHIFT);
    double ticks = measured > 0 && squares > 0 ? squares / measured : (double)h->tick_ticks;

    return ticks * 1e9 / (double)h->ticks_per_second;
}

static void fill_ticker(const hfn_time_header *h, hotfn_record_time_info *i)
{
    double sum = (double)h->tick_sum;

    if (h->tick_ticks == 0) {
        return;
    }
    i->ticker = h->ticker;
    i->ticker_cpu_ns = h->ticker_cpu_ns;
    i->tick_ns = i->resolution_ns;
    i->tick_error_ns = hfn_times_tick_error_ns(h);
    if (sum > 0) {
        i->coarse_share = (double)h->coarse_ticks / sum;
        i->missing_share = (double)h->missing_ticks / sum;
    }
}

static void fill_info(const hotfn_record *r, hotfn_record_time_info *i)
{
    const hfn_time_header *h = &r->times.header;
    uint32_t pool = h->histogram_capacity;

    i->flags = h->flags;
    i->clock = h->tick_ticks ? HOTFN_CLOCK_TICK : h->clock;
    i->sample_mean = h->sample_mean;
    i->ticks_per_second = h->ticks_per_second;
    i->resolution_ns = (double)h->resolution_ticks * 1e9 / (double)h->ticks_per_second;
    i->cost_inside_ns = convert_cost_to_ns(r, h->cost_inside_ticks);
    i->cost_outside_ns = convert_cost_to_ns(r, h->cost_outside_ticks);
    i->count_cost_ns = convert_cost_to_ns(r, h->count_cost_ticks);
    i->call_stack_bytes = h->call_stack_bytes;
    fill_ticker(h, i);
    i->slow_ns = hfn_times_ns(r, h->slow_ticks);
    i->edge_count = r->sums->edge_count;
    i->node_count = get_node_count(r);
    i->slow_count = count_shown_slow_calls(r);
    i->nodes_merged = h->nodes_merged;
    i->histograms_lost = h->histograms_used > pool ? h->histograms_used - pool : 0;
    if (h->clock_stopped_ticks > h->start_ticks) {
        i->clock_stopped_ns = hfn_times_ns(r, h->clock_stopped_ticks - h->start_ticks);
    }
    if (h->waiting_stopped_ticks > h->start_ticks) {
        i->waiting_stopped_ns = hfn_times_ns(r, h->waiting_stopped_ticks - h->start_ticks);
    }
    i->abandoned_exits = h->abandoned_exits;
    i->clock_went_back = h->clock_went_back;
    i->slow_lost = h->slow_used > r->times.slow_count ? h->slow_used - r->times.slow_count : 0;
    for (uint32_t t = 0; t < r->times.thread_count; t++) {
        if (!hfn_record_row_is_shown(r, t)) {
            continue;
        }
        i->event_count += r->times.event_count > 0 ? count_events(&r->times, t) : 0;
        i->busy_ns += hfn_record_busy_ns(r, t);
        i->waited_ns += hfn_record_waited_ns(r, t);
        i->events_lost += r->times.threads[t].events;
    }
    i->events_lost -= i->events_lost < i->event_count ? i->events_lost : i->event_count;
}

hotfn_status hotfn_record_get_time_info(const hotfn_record *r, hotfn_record_time_info *out)
{
    if (!r) {
        return HOTFN_E_OPTION;
    }

    hotfn_record_time_info info = HOTFN_RECORD_TIME_INFO_INIT;

    info.note = r->times_note;
    if (r->times_note[0]) {
        info.note_offset = r->layout.sections[HFN_SECTION_TIME_HEADER].offset;
    }
    if (r->times.present) {
        fill_info(r, &info);
    }
    return hfn_copy_result(out, &info, sizeof info);
}
