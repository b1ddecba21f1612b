/* SPDX-License-Identifier: MIT */
/* HOT PATH: the rare cases of the open-call stack, and what starts and ends a row. */
#include "counters/timing/open_calls.h"

#include "counters/thread_row.h"
#include "counters/timing/places.h"
#include "counters/timing/sample_mode.h"
#include "counters/timing/waiting.h"
#include "os/hot_path.h"

hfn_time_engine hfn_time;

HFN_KEEPS_REGISTERS void hfn_open_calls_cut(hfn_time_state *t, uint32_t depth)
{
    hfn_open_call *log = hfn_open_calls_of(t);

    for (uint32_t i = hfn_open_calls_count(t); i-- > depth;) {
        if (log[i].frame > HFN_LEFT_FRAME) {
            __atomic_fetch_add(&hfn_time.header->abandoned_exits, 1, __ATOMIC_RELAXED);
        }
        log[i].frame = 0;
    }
    t->depth = depth;
    t->started = t->started < depth ? t->started : depth;
}

HFN_KEEPS_REGISTERS void hfn_open_calls_remove_left(hfn_time_state *t, uint64_t frame)
{
    const hfn_open_call *log = hfn_open_calls_of(t);
    uint32_t depth = t->depth;

    while (depth > 0 && depth <= HFN_LOG_CAPACITY && log[depth - 1].frame - 1 < frame) {
        depth--;
    }
    if (depth < t->depth) {
        hfn_open_calls_cut(HFN_PASS(t), HFN_PASS(depth));
        t->node = depth > 0 ? hfn_call_node(log[depth - 1].call_word) : t->root;
    }
}

HFN_KEEPS_REGISTERS void hfn_open_calls_remove(hfn_time_state *t, const hfn_time_frame *f)
{
    hfn_open_call *log = hfn_open_calls_of(t);
    uint32_t depth = f->depth;
    bool has_entry = depth < HFN_LOG_CAPACITY;

    if (depth >= t->depth || (has_entry && log[depth].frame != (uint64_t)(uintptr_t)f)) {
        return; /* it waited on another stack, and was removed */
    }
    if (has_entry) {
        log[depth].frame = HFN_LEFT_FRAME;
    }
    hfn_open_calls_cut(HFN_PASS(t), HFN_PASS(depth));
}

uint32_t hfn_open_calls_find(hfn_time_state *t, uint64_t frame)
{
    const hfn_open_call *log = hfn_open_calls_of(t);
    uint32_t i = hfn_open_calls_count(t);

    while (i > 0 && (frame == 0 ? log[i - 1].frame <= HFN_LEFT_FRAME : log[i - 1].frame != frame)) {
        i--;
    }
    return i;
}

/* ---- The clock. */

uint64_t hfn_time_now(void)
{
    if (hfn_time.tick) {
        return hfn_load_tick(hfn_time.tick);
    }
    if (hfn_time.clock == HFN_CLOCK_STOPPED) {
        return hfn_thread_row ? hfn_load_tick(&hfn_time_state_of(hfn_thread_row)->last_tick) : 0;
    }
    return hfn_time.clock == HOTFN_CLOCK_MONOTONIC ? hfn_os_hot_monotonic_ns() : hfn_cpu_ticks();
}

/* ---- Rows. */

void hfn_time_begin_row(uint8_t *row, uint32_t thread)
{
    hfn_time_state *t = hfn_time_state_of(row);
    hfn_open_call *log = hfn_open_calls_of(t);
    uint64_t now = hfn_time_now();

    for (uint32_t i = 0; i < hfn_open_calls_count(t); i++) {
        log[i].frame = 0; /* of the thread that had the row before */
    }
    t->depth = t->started = 0;
    t->node = t->root;
    t->alloc_frame = 0;
    t->epoch = 0;
    t->last_tick = now;
    if (t->first_tick == 0) {
        t->first_tick = now;
    }
    t->thread = thread;
    hfn_waiting_begin(t, now);
    t->random ^= now;
}

void hfn_time_begin_child(uint8_t *row)
{
    hfn_time_state *t = hfn_time_state_of(row);

    t->epoch = t->last_tick;
}

static void add_cell(hfn_time_cell *to, const hfn_time_cell *from)
{
    to->total_ticks += from->total_ticks;
    to->timed_calls += from->timed_calls;
    to->sampled.weight += from->sampled.weight;
    to->sampled.squares += from->sampled.squares;
    if (from->max_ticks > to->max_ticks) {
        to->max_ticks = from->max_ticks;
    }
}

void hfn_time_add_row(uint8_t *to, const uint8_t *from, uint32_t slots)
{
    hfn_time_state *sum = hfn_time_state_of(to);
    const hfn_time_state *t = (const void *)(from + hfn_time.thread_at);
    const hfn_time_cell *cells = (const void *)(t + 1);

    sum->timed += t->timed;
    for (uint32_t i = 0; i < slots; i++) {
        if (HFN_UNLIKELY(cells[i].timed_calls != 0 || cells[i].max_ticks != 0)) {
            add_cell(hfn_time_cell_of(sum, i), &cells[i]);
        }
    }
}

void hfn_time_end_row(uint8_t *row, uint64_t now, uint64_t cpu_ns)
{
    hfn_time_state *t = hfn_time_state_of(row);
    hfn_open_call *log = hfn_open_calls_of(t);
    bool is_sampled = (hfn_time.flags & HOTFN_TIMING_SAMPLED) != 0;

    if (!is_sampled) {
        hfn_place_charge_until(t, now);
        if (hfn_time.cpu_rate != 0 && cpu_ns >= t->cpu_ns) {
            hfn_waiting_charge(t, cpu_ns);
        }
    }
    for (uint32_t i = hfn_open_calls_count(t); i-- > 0;) {
        if (log[i].frame > HFN_LEFT_FRAME) {
            is_sampled ? hfn_sample_end_call(t, &log[i], now) : hfn_place_end_call(t, i);
        }
        log[i].frame = 0;
    }
    t->depth = t->started = 0;
    t->node = t->root;
}

/* The innermost calls that exceptions have ended. */
static void remove_ended_calls(hfn_time_state *t)
{
    const hfn_open_call *log = hfn_open_calls_of(t);
    uint32_t depth = t->depth;

    while (depth > 0 && depth <= HFN_LOG_CAPACITY && log[depth - 1].frame == HFN_LEFT_FRAME) {
        depth--;
    }
    if (depth < t->depth) {
        t->node = hfn_place_of_caller(hfn_call_node(log[depth].call_word));
        hfn_open_calls_cut(t, depth);
    }
}

/* End the call with this frame, which an exception passes.  The unwinder may make timed calls of
 * its own inside it: these stay open, and their place stays the current one.
 */
void hfn_time_leave(uint64_t frame)
{
    hfn_time_state *t;
    hfn_open_call *call;
    uint32_t number;
    uint64_t now;

    if (!hfn_thread_row || !hfn_time_is_on()) {
        return;
    }
    t = hfn_time_state_of(hfn_thread_row);
    number = hfn_open_calls_find(t, frame);
    now = hfn_time_now();
    if (number == 0) {
        return;
    }
    call = &hfn_open_calls_of(t)[number - 1];
    if (hfn_time.flags & HOTFN_TIMING_SAMPLED) {
        hfn_sample_end_call(t, call, now);
    } else {
        hfn_place_charge_until(t, now);
        hfn_place_end_call(t, number - 1);
    }
    call->frame = HFN_LEFT_FRAME;
    remove_ended_calls(t);
}
