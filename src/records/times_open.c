/* SPDX-License-Identifier: MIT */
/* Calls that had not returned when the record ended: exit(), _exit() and kill leave them open, and
 * a thread may wait for ever.  They are given the time until then, as if they had ended then, and a
 * cell has the number of them.  Until the record is validated they are kept in a list, so that the
 * difference of two states can subtract the time that they had in the first state. */
#include "base/search.h"
#include "base/sort.h"
#include "records/times.h"

/* ---- When a row's process was last seen. */

typedef struct seen {
    uint64_t last;
    uint32_t process, row;
} seen;

static bool comes_before(const void *left, const void *right)
{
    const seen *a = left, *b = right;

    return a->process < b->process;
}

static const hfn_time_state *get_state(const hfn_times *t, uint32_t row)
{
    return (const void *)&t->threads[row];
}

static uint64_t get_later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* The process with this pid.  If it executed other programs, several have the pid: the latest. */
static uint32_t main_process(const hfn_times *t, const hfn_thread_cell *owners, uint32_t rows,
                             uint32_t pid)
{
    uint64_t last = 0;
    uint32_t process = 0;

    for (uint32_t i = 0; i < rows; i++) {
        if (owners[i].pid == pid && t->threads[i].last_tick >= last) {
            last = t->threads[i].last_tick;
            process = owners[i].process;
        }
    }
    return process;
}

bool hfn_times_find_ends(const hfn_times *t, const hfn_thread_cell *owners, uint32_t rows,
                         uint32_t pid, uint64_t now, uint64_t *ends)
{
    size_t bytes = (size_t)rows * sizeof(seen);
    seen *items = hfn_allocate_zeroed(&t->env, bytes), *room = hfn_allocate_zeroed(&t->env, bytes),
         *sorted;
    uint32_t ended_now = main_process(t, owners, rows, pid);
    bool held = items && room;

    for (uint32_t i = 0; held && i < rows; i++) {
        items[i] = (seen){ t->threads[i].last_tick, owners[i].process, i };
    }
    sorted = held ? hfn_sort_items(items, room, rows, sizeof *items, comes_before) : NULL;
    for (uint32_t begin = 0, end; held && begin < rows; begin = end) {
        uint64_t last = sorted[begin].process == ended_now ? now : 0, executed = 0;

        for (end = begin; end < rows && sorted[end].process == sorted[begin].process; end++) {
            last = get_later(last, sorted[end].last);
            executed = get_later(executed, get_state(t, sorted[end].row)->exec_tick);
        }
        last = executed ? executed : last;
        for (uint32_t i = begin; i < end; i++) {
            ends[sorted[i].row] = last;
        }
    }
    hfn_free_memory(&t->env, items, bytes);
    hfn_free_memory(&t->env, room, bytes);
    return held;
}

/* ---- From a row. */

#define READING_NS 1e8 /* launch/threads.c */

/* Smaller frames mark free entries of the log, and calls that an exception has ended. */
enum { FIRST_FRAME = 2 };

static bool add_item(hfn_times *t, const hfn_unreturned *item)
{
    if (!hfn_grow_array(&t->env, (void **)&t->open, &t->open_capacity, t->open_count + 1,
                        sizeof *t->open)) {
        return false;
    }
    t->open[t->open_count++] = *item;
    return true;
}

static uint64_t ticks_between(uint64_t start, uint64_t end)
{
    return (int64_t)(end - start) > 0 ? end - start : 0;
}

static bool is_sampled(const hfn_times *t)
{
    return (t->header.flags & HOTFN_TIMING_SAMPLED) != 0;
}

/* What the thread waited since the time in its state, of at most `ticks`.  Its processor time
 * is read at intervals of READING_NS, so it may have used that much more. */
static uint64_t find_waited(const hfn_times *t, const hfn_time_state *s,
                            const hfn_thread_cell *owner, uint64_t ticks, uint64_t end)
{
    double rate = (double)t->header.ticks_per_second / 1e9, used, waited;

    if (!(t->header.flags & HOTFN_TIMING_WAITING) || owner->thread_count != 1 ||
        owner->cpu_ns == 0) {
        return 0;
    }
    used = owner->cpu_ns > s->cpu_ns ? (double)(owner->cpu_ns - s->cpu_ns) : 0;
    waited = (double)ticks_between(s->cpu_tick, end) - (used + READING_NS) * rate;
    return waited <= 0 ? 0 : waited < (double)ticks ? (uint64_t)waited : ticks;
}

bool hfn_times_add_running(hfn_times *t, uint32_t thread, const hfn_thread_cell *owner,
                           uint64_t end)
{
    const hfn_time_state *s = get_state(t, thread);
    uint64_t ticks = ticks_between(s->last_tick, end);
    hfn_unreturned item = { .ticks = ticks,
                            .waited = find_waited(t, s, owner, ticks, end),
                            .thread = thread,
                            .node = s->node,
                            .kind = HFN_UNRETURNED_RUNS };

    return s->depth == 0 || is_sampled(t) || add_item(t, &item);
}

/* A call without a start began after the thread's latest event.  In a sample, starts are ticks;
 * else they are the thread's own time. */
static uint64_t find_start(const hfn_times *t, uint32_t thread, const hfn_open_call *call,
                           bool has_start)
{
    const hfn_time_state *s = get_state(t, thread);

    return is_sampled(t) ? get_later(call->start, s->epoch)
           : has_start   ? call->start + s->hook_ticks
                         : s->last_tick;
}

bool hfn_times_add_open(hfn_times *t, uint32_t thread, const hfn_open_call *calls, uint32_t depth,
                        uint32_t count, uint64_t end)
{
    for (uint32_t i = 0; i < count; i++) {
        bool has_start = depth + i < get_state(t, thread)->started;
        uint64_t start = find_start(t, thread, &calls[i], has_start);
        hfn_unreturned item = { .ticks = ticks_between(start, end),
                                .start = start,
                                .weight = calls[i].interval,
                                .thread = thread,
                                .slot = (uint32_t)calls[i].call_word & HFN_CALL_SLOT,
                                .node = (uint32_t)(calls[i].call_word >> HFN_CALL_NODE_SHIFT),
                                .kind = is_sampled(t) ? HFN_UNRETURNED_SAMPLED
                                                      : HFN_UNRETURNED_COUNTED };

        if (calls[i].frame >= FIRST_FRAME && !add_item(t, &item)) {
            return false;
        }
    }
    return true;
}

/* ---- Into cells. */

/* The entry of its function; NULL if there is none. */
static hfn_time_cell *find_cell(hfn_times *t, const hfn_unreturned *item)
{
    hfn_time_entry *all = t->entries; /* by thread, then by slot */
    const size_t bytes = sizeof *all, thread_at = offsetof(hfn_time_entry, thread);
    size_t first = hfn_count_below_u32(all, t->entry_count, bytes, thread_at, item->thread);
    size_t end = hfn_count_below_u32(all, t->entry_count, bytes, thread_at, item->thread + 1ull);

    if (first == end) {
        return NULL;
    }
    first += hfn_count_below_u32(&all[first], end - first, bytes, offsetof(hfn_time_entry, slot),
                                 item->slot);
    return first < end && all[first].slot == item->slot ? &all[first].cell : NULL;
}

static void end_sampled_call(const hfn_unreturned *item, hfn_time_cell *c)
{
    double square = (double)(item->ticks >> HFN_SAMPLE_SHIFT);

    square *= square * (double)item->weight * ((double)item->weight - 1);
    square += (double)c->sampled.squares;
    c->total_ticks += item->ticks * item->weight;
    c->timed_calls++;
    c->sampled.weight += item->weight;
    c->sampled.squares = square < 1.8e19 ? (uint64_t)square : UINT64_MAX;
}

void hfn_times_end_open(hfn_times *t)
{
    for (size_t i = 0; i < t->open_count; i++) {
        const hfn_unreturned *item = &t->open[i];
        hfn_time_cell *c = find_cell(t, item);

        if (!c) {
            continue;
        }
        c->max_ticks = get_later(c->max_ticks, item->ticks);
        c->open++;
        if (item->kind == HFN_UNRETURNED_SAMPLED) {
            end_sampled_call(item, c);
        }
    }
    t->open_count = 0;
}

void hfn_times_subtract_open(hfn_times *t, const hfn_times *from)
{
    for (size_t i = 0; i < from->open_count; i++) {
        const hfn_unreturned *item = &from->open[i];
        hfn_time_cell *c = item->kind == HFN_UNRETURNED_SAMPLED ? find_cell(t, item) : NULL;

        if (c) {
            uint64_t ticks = item->ticks * item->weight;
            c->total_ticks -= ticks < c->total_ticks ? ticks : c->total_ticks;
        }
    }
}
