/* SPDX-License-Identifier: MIT */
/* Times from the call tree of a live record.  Each place has the ticks that were charged to it,
 * its calls, and how many of these ticks it waited; all other times are sums over the tree: totals
 * of places, and the cells of functions.  A total includes waiting, a function's own time does not.
 * A cell in the live record has only the longest call and a histogram. */
#include "records/times.h"

typedef struct sums {
    hfn_times *times;
    uint32_t slot_count;
    uint64_t *within;        /* by node: calls in it and below                     */
    uint64_t *self;          /* by node: with waiting                              */
    uint64_t *waited;        /* by node: in it and below                           */
    uint32_t *by_thread;     /* node indices, by thread                            */
    uint32_t *thread_end;    /* by thread: end of its nodes in by_thread           */
    hfn_time_cell *cells;    /* of one thread, by slot                             */
    uint64_t *totals_waited; /* likewise                                           */
    hfn_time_entry *old;     /* the entries as they were read                      */
    size_t old_count;
} sums;

static bool is_place(const sums *s, uint32_t node)
{
    const hfn_time_node *n = &s->times->nodes[node];

    return n->slot < s->slot_count && n->thread < s->times->thread_count;
}

/* The caller's place, or `node` itself if there is none: parents are made before their children. */
static uint32_t parent_of(const sums *s, uint32_t node)
{
    uint32_t parent = s->times->nodes[node].parent;

    return parent < node && is_place(s, parent) ? parent : node;
}

static bool is_nested(const sums *s, uint32_t node)
{
    uint32_t slot = s->times->nodes[node].slot, at = node, parent;

    for (; (parent = parent_of(s, at)) != at; at = parent) {
        if (s->times->nodes[parent].slot == slot) {
            return true;
        }
    }
    return false;
}

/* If calls are timed by the counter, subtracting the cost of hooks may make the time of a place
 * negative.  The place then gets 0, and the deficit is subtracted from its caller's place, so that
 * the sum over all places stays the same. */
static void pass_deficits(sums *s)
{
    for (uint32_t i = s->times->node_count; i-- > 0;) {
        uint32_t parent = is_place(s, i) ? parent_of(s, i) : i;

        if ((int64_t)s->self[i] < 0) {
            s->self[parent] += parent != i ? s->self[i] : 0;
            s->self[i] = 0;
        }
    }
}

static void add_up_nodes(sums *s)
{
    hfn_times *t = s->times;

    for (uint32_t i = 0; i < t->node_count; i++) {
        s->self[i] = t->nodes[i].total_ticks;
        s->within[i] = t->nodes[i].calls;
        t->nodes[i].timed_calls = t->nodes[i].calls;
    }
    pass_deficits(s);
    for (uint32_t i = 0; i < t->node_count; i++) {
        hfn_time_node *n = &t->nodes[i];
        n->total_ticks = s->self[i];
        n->waited_ticks = n->waited_ticks < s->self[i] ? n->waited_ticks : s->self[i];
        s->waited[i] = n->waited_ticks;
    }
    for (uint32_t i = t->node_count; i-- > 0;) {
        uint32_t parent = is_place(s, i) ? parent_of(s, i) : i;
        if (parent != i) {
            t->nodes[parent].total_ticks += t->nodes[i].total_ticks;
            s->within[parent] += s->within[i];
            s->waited[parent] += s->waited[i];
        }
    }
}

static void sort_by_thread(sums *s)
{
    const hfn_times *t = s->times;
    uint32_t at = 0;

    for (uint32_t i = 0; i < t->node_count; i++) {
        if (is_place(s, i)) {
            s->thread_end[t->nodes[i].thread]++;
        }
    }
    for (uint32_t i = 0; i < t->thread_count; i++) {
        uint32_t count = s->thread_end[i];
        s->thread_end[i] = at; /* the next loop advances it to the end */
        at += count;
    }
    for (uint32_t i = 0; i < t->node_count; i++) {
        if (is_place(s, i)) {
            s->by_thread[s->thread_end[t->nodes[i].thread]++] = i;
        }
    }
}

static void add_to_cells(sums *s, uint32_t node)
{
    const hfn_time_node *n = &s->times->nodes[node];
    uint32_t parent = parent_of(s, node);
    hfn_time_cell *c = &s->cells[n->slot];

    c->self_ticks += s->self[node] - n->waited_ticks;
    c->waited_ticks += n->waited_ticks;
    c->timed_calls += n->calls;
    if (parent != node) {
        s->cells[s->times->nodes[parent].slot].callee_timed += n->calls;
    }
    if (!is_nested(s, node)) {
        c->total_ticks += n->total_ticks;
        c->within_timed += s->within[node];
        s->totals_waited[n->slot] += s->waited[node];
    }
    s->times->threads[n->thread].busy_ticks += s->self[node] - n->waited_ticks;
}

static bool add_thread(sums *s, uint32_t thread)
{
    hfn_times *t = s->times;
    uint32_t first = thread > 0 ? s->thread_end[thread - 1] : 0;

    memset(s->cells, 0, s->slot_count * sizeof *s->cells);
    memset(s->totals_waited, 0, s->slot_count * sizeof *s->totals_waited);
    for (; s->old_count > 0 && s->old->thread == thread; s->old++, s->old_count--) {
        s->cells[s->old->slot].max_ticks = s->old->cell.max_ticks;
        s->cells[s->old->slot].histogram = s->old->cell.histogram;
    }
    for (uint32_t i = first; i < s->thread_end[thread]; i++) {
        add_to_cells(s, s->by_thread[i]);
    }
    for (uint32_t slot = 0; first < s->thread_end[thread] && slot < s->slot_count; slot++) {
        hfn_time_entry e = { .cell = s->cells[slot],
                             .slot = slot,
                             .thread = thread,
                             .total_waited_ticks = s->totals_waited[slot] };
        bool has_time =
            e.cell.timed_calls != 0 || e.cell.self_ticks != 0 || e.cell.waited_ticks != 0;
        if (has_time && !hfn_times_add_entry(t, &e)) {
            return false;
        }
    }
    return true;
}

static bool add_up_cells(sums *s)
{
    hfn_times *t = s->times;
    hfn_time_entry *old = t->entries;
    size_t old_capacity = t->entry_capacity;
    bool fits = true;

    s->old = old;
    s->old_count = t->entry_count;
    t->entries = NULL;
    t->entry_count = t->entry_capacity = 0;
    for (uint32_t i = 0; i < t->thread_count; i++) {
        t->threads[i].busy_ticks = 0;
    }
    for (uint32_t i = 0; fits && i < t->thread_count; i++) {
        fits = add_thread(s, i);
    }
    hfn_free_memory(&t->env, old, old_capacity * sizeof *old);
    return fits;
}

/* Charge the time from a thread's last event to the end of the record to the place of the call that
 * was running then. */
static void charge_running_calls(hfn_times *t)
{
    size_t kept = 0;

    for (size_t i = 0; i < t->open_count; i++) {
        const hfn_unreturned *item = &t->open[i];
        if (item->kind != HFN_UNRETURNED_RUNS) {
            t->open[kept++] = *item;
        } else if (item->node - 1 < t->node_count) {
            t->nodes[item->node - 1].total_ticks += item->ticks;
            t->nodes[item->node - 1].waited_ticks += item->waited;
            t->threads[item->thread].last_tick += item->ticks;
        }
    }
    t->open_count = kept;
}

/* ---- Histograms: with a tick clock, the calls that saw no tick are added to the first bucket. */

static bool complete_histogram(const hfn_times *t, size_t row, uint64_t calls, hfn_packed *out,
                               uint64_t *counts)
{
    uint64_t sum = 0; /* calls that saw a tick */

    memset(counts, 0, HFN_HISTOGRAM_BYTES);
    hfn_unpack_add(hfn_packed_row(&t->histograms, row), counts, HOTFN_HISTOGRAM_BUCKETS);
    for (uint32_t i = 0; i < HOTFN_HISTOGRAM_BUCKETS; i++) {
        sum += counts[i];
    }
    counts[0] += (int64_t)(calls - sum) > 0 ? calls - sum : 0;
    return hfn_packed_append(out, counts, HOTFN_HISTOGRAM_BUCKETS) && hfn_packed_end_row(out);
}

static bool complete_histograms(hfn_times *t)
{
    size_t rows = t->histograms.row_count, call_bytes = (rows + 1) * sizeof(uint64_t);
    uint64_t *counts = hfn_allocate_zeroed(&t->env, HFN_HISTOGRAM_BYTES);
    uint64_t *calls = hfn_allocate_zeroed(&t->env, call_bytes);
    hfn_packed all;
    bool fits = counts && calls;

    for (size_t i = 0; fits && i < t->entry_count; i++) {
        uint32_t number = t->entries[i].cell.histogram; /* 0: none */
        calls[number <= rows ? number : 0] += t->entries[i].cell.timed_calls;
    }
    hfn_packed_init(&all, &t->env);
    for (size_t row = 0; fits && row < rows; row++) {
        fits = complete_histogram(t, row, calls[row + 1], &all, counts);
    }
    hfn_free_memory(&t->env, counts, HFN_HISTOGRAM_BYTES);
    hfn_free_memory(&t->env, calls, call_bytes);
    hfn_packed_finish(fits ? &t->histograms : &all);
    if (fits) {
        t->histograms = all;
    }
    return fits;
}

/* A flat run needs its tree only for these sums, and for allocations by place. */
static void drop_tree(hfn_times *t)
{
    if (!(t->header.flags & HOTFN_TIMING_TREE) && !t->allocs) {
        t->node_count = 0;
    }
}

bool hfn_times_sum_tree(hfn_times *t, uint32_t slot_count)
{
    size_t words = (size_t)t->node_count * sizeof(uint64_t), ends = t->thread_count + 1u,
           slot_words = (slot_count + 1u) * sizeof(uint64_t);
    sums s = { .times = t,
               .slot_count = slot_count,
               .within = hfn_allocate_zeroed(&t->env, words + 8),
               .self = hfn_allocate_zeroed(&t->env, words + 8),
               .by_thread = hfn_allocate_zeroed(&t->env, words / 2 + 8),
               .thread_end = hfn_allocate_zeroed(&t->env, ends * sizeof(uint32_t)),
               .waited = hfn_allocate_zeroed(&t->env, words + 8),
               .cells = hfn_allocate_zeroed(&t->env, (slot_count + 1u) * sizeof *s.cells),
               .totals_waited = hfn_allocate_zeroed(&t->env, slot_words) };
    bool fits =
        s.within && s.self && s.waited && s.by_thread && s.thread_end && s.cells && s.totals_waited;

    if (fits) {
        charge_running_calls(t);
        add_up_nodes(&s);
        sort_by_thread(&s);
        fits = add_up_cells(&s) && (t->header.tick_ticks == 0 || complete_histograms(t));
        drop_tree(t);
    }
    hfn_free_memory(&t->env, s.within, words + 8);
    hfn_free_memory(&t->env, s.self, words + 8);
    hfn_free_memory(&t->env, s.waited, words + 8);
    hfn_free_memory(&t->env, s.totals_waited, slot_words);
    hfn_free_memory(&t->env, s.by_thread, words / 2 + 8);
    hfn_free_memory(&t->env, s.thread_end, ends * sizeof(uint32_t));
    hfn_free_memory(&t->env, s.cells, (slot_count + 1u) * sizeof *s.cells);
    return fits;
}
