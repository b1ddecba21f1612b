/* SPDX-License-Identifier: MIT */
/* Calls that had not returned when the record ended: exit(), _exit() and kill leave them open, and a thread may
 * wait for ever.  They have the time until then, and count as ended then; a cell says how many they were.
 * Until the record is settled they stand apart, so that a window can take off what was theirs at its begin. */
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

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Several have one pid where it executed another program: the last one. */
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
            last = later(last, sorted[end].last);
            executed = later(executed, get_state(t, sorted[end].row)->exec_tick);
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

/* ---- Out of a row. */

static bool add(hfn_times *t, const hfn_unreturned *item)
{
    if (!hfn_grow_array(&t->env, (void **)&t->open, &t->open_capacity, t->open_count + 1,
                        sizeof *t->open)) {
        return false;
    }
    t->open[t->open_count++] = *item;
    return true;
}

static uint64_t since(uint64_t start, uint64_t end)
{
    return (int64_t)(end - start) > 0 ? end - start : 0;
}

bool hfn_times_add_running(hfn_times *t, uint32_t thread, uint64_t end)
{
    const hfn_time_state *s = (const void *)&t->threads[thread];
    hfn_unreturned item = { .ticks = since(s->last_tick, end),
                            .thread = thread,
                            .slot = s->current - 1,
                            .kind = HFN_UNRETURNED_RUNS };

    return s->current == 0 || add(t, &item);
}

/* A place of the log that is free holds 0 as its frame.  The innermost call has begun once it is current. */
static bool is_open(const hfn_time_state *s, const hfn_open_call *call, uint32_t depth)
{
    uint32_t slot = (uint32_t)call->how & HFN_CALL_SLOT;

    return call->frame != 0 && !(call->how & HFN_CALL_ENDED) &&
           (depth + 1 != s->depth || slot + 1 == s->current);
}

/* In a sample; smaller frames are free places of the log, and calls that an exception left. */
static bool add_open_sample(hfn_times *t, uint32_t thread, const hfn_open_call *calls,
                            uint32_t count, uint64_t end)
{
    enum { FIRST_FRAME = 2 };

    for (uint32_t i = 0; i < count; i++) {
        hfn_unreturned item = { .ticks = since(calls[i].start, end),
                                .start = calls[i].start,
                                .weight = calls[i].interval,
                                .thread = thread,
                                .slot = (uint32_t)calls[i].how & HFN_CALL_SLOT,
                                .kind = HFN_UNRETURNED_SAMPLED };

        if (calls[i].frame >= FIRST_FRAME && !add(t, &item)) {
            return false;
        }
    }
    return true;
}

bool hfn_times_add_open(hfn_times *t, uint32_t thread, const hfn_open_call *calls, uint32_t depth,
                        uint32_t count, uint64_t end)
{
    const hfn_time_state *s = (const void *)&t->threads[thread];

    if (t->header.flags & HOTFN_TIMING_SAMPLED) {
        return add_open_sample(t, thread, calls, count, end);
    }
    for (uint32_t i = 0; i < count; i++) {
        uint64_t how = calls[i].how, start = later(calls[i].start, s->floor);
        hfn_unreturned item = {
            .ticks = since(start, end),
            .start = start,
            .within = since(calls[i].timed_before, s->timed),
            .thread = thread,
            .slot = (uint32_t)how & HFN_CALL_SLOT,
            .node = how & HFN_CALL_MERGED ? 0 : (uint32_t)(how >> HFN_CALL_NODE_SHIFT),
            .kind = how & HFN_CALL_NESTED ? HFN_UNRETURNED_NESTED : HFN_UNRETURNED_OUTERMOST
        };

        if (is_open(s, &calls[i], depth + i) && !add(t, &item)) {
            return false;
        }
    }
    return true;
}

/* ---- Into the sums. */

/* The entry that it belongs to; NULL: there is none, which no engine leaves. */
static hfn_time_cell *cell_of(hfn_times *t, const hfn_unreturned *item)
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

static hfn_time_node *node_of(hfn_times *t, const hfn_unreturned *item)
{
    return item->node != 0 && item->node <= t->node_count &&
                   t->nodes[item->node - 1].slot == item->slot
               ? &t->nodes[item->node - 1]
               : NULL;
}

static void end_sampled_call(const hfn_unreturned *item, hfn_time_cell *c)
{
    uint64_t length = item->ticks >> HFN_SAMPLE_SHIFT;
    double square =
        (double)length * (double)length * (double)item->weight * ((double)item->weight - 1);

    c->max_ticks = later(c->max_ticks, item->ticks);
    c->total_ticks += item->ticks * item->weight;
    c->timed_calls++;
    c->open++;
    c->sampled.weight += item->weight;
    square += (double)c->sampled.squares;
    c->sampled.squares = square < 1.8e19 ? (uint64_t)square : UINT64_MAX;
}

static void end_call(hfn_times *t, const hfn_unreturned *item, hfn_time_cell *c)
{
    hfn_time_node *n = node_of(t, item);

    if (item->kind == HFN_UNRETURNED_SAMPLED) {
        end_sampled_call(item, c);
        return;
    }
    if (item->kind == HFN_UNRETURNED_COUNTED) {
        c->max_ticks = later(c->max_ticks, item->ticks);
        c->open++;
        return;
    }
    if (item->kind == HFN_UNRETURNED_OUTERMOST) {
        c->total_ticks += item->ticks;
        c->within_timed += item->within + 1;
    }
    c->max_ticks = later(c->max_ticks, item->ticks);
    if (c->timed_calls++ == 0) {
        c->min_ticks = item->ticks + 1;
    }
    c->open++;
    if (n) {
        n->total_ticks += item->ticks;
        n->timed_calls++;
    }
}

void hfn_times_end_open(hfn_times *t)
{
    for (size_t i = 0; i < t->open_count; i++) {
        const hfn_unreturned *item = &t->open[i];
        hfn_time_cell *c = cell_of(t, item);

        if (c && item->kind != HFN_UNRETURNED_RUNS) {
            end_call(t, item, c);
        } else if (c) {
            c->self_ticks += item->ticks;
            t->threads[item->thread].busy_ticks += item->ticks;
            t->threads[item->thread].last_tick += item->ticks; /* it was there until then */
        }
    }
    t->open_count = 0;
}

static void take_off(uint64_t *from, uint64_t amount)
{
    *from -= amount < *from ? amount : *from;
}

void hfn_times_subtract_open(hfn_times *t, const hfn_times *from)
{
    for (size_t i = 0; i < from->open_count; i++) {
        const hfn_unreturned *item = &from->open[i];
        hfn_time_cell *c = cell_of(t, item);
        hfn_time_node *n = node_of(t, item);

        if (item->kind == HFN_UNRETURNED_COUNTED) {
            continue;
        }
        if (c && item->kind == HFN_UNRETURNED_SAMPLED) {
            take_off(&c->total_ticks, item->ticks * item->weight);
            continue;
        }
        if (c && item->kind == HFN_UNRETURNED_RUNS) {
            take_off(&c->self_ticks, item->ticks);
            take_off(&t->threads[item->thread].busy_ticks, item->ticks);
            continue;
        }
        if (c && item->kind == HFN_UNRETURNED_OUTERMOST) {
            take_off(&c->total_ticks, item->ticks);
        }
        if (n) {
            take_off(&n->total_ticks, item->ticks);
        }
    }
}
