/* SPDX-License-Identifier: MIT */
/* Creates, fills and sorts the times of a record in memory.  No number from the target is trusted:
 * elements with an invalid index are dropped, and dropped nodes are counted. */
#include "records/times.h"

#include "base/sort.h"

static void *make_array(const hotfn_env *env, uint64_t count, size_t element_bytes)
{
    return hfn_allocate_zeroed(env, (size_t)count * element_bytes);
}

static void free_array(const hotfn_env *env, void *array, uint64_t count, size_t element_bytes)
{
    hfn_free_memory(env, array, (size_t)count * element_bytes);
}

uint64_t hfn_ticks_to_ns(const hfn_time_header *header, uint64_t ticks)
{
    uint64_t rate = header->ticks_per_second;
    double ns;

    if (ticks < UINT64_MAX / 1000000000u) {
        return ticks * 1000000000u / rate;
    }
    ns = (double)ticks * 1e9 / (double)rate;
    return ns < 1.8e19 ? (uint64_t)ns : UINT64_MAX;
}

void hfn_times_init(hfn_times *t, const hotfn_env *env)
{
    memset(t, 0, sizeof *t);
    t->env = *env;
    hfn_packed_init(&t->histograms, env);
}

void hfn_times_finish(hfn_times *t)
{
    hotfn_env env = t->env;

    free_array(&env, t->threads, t->thread_count, sizeof *t->threads);
    free_array(&env, t->event_ends, t->thread_count, sizeof *t->event_ends);
    hfn_free_memory(&env, t->entries, t->entry_capacity * sizeof *t->entries);
    hfn_free_memory(&env, t->open, t->open_capacity * sizeof *t->open);
    hfn_packed_finish(&t->histograms);
    free_array(&env, t->nodes, t->node_capacity, sizeof *t->nodes);
    free_array(&env, t->allocs, t->node_capacity, sizeof *t->allocs);
    free_array(&env, t->slow, t->slow_capacity, sizeof *t->slow);
    hfn_free_memory(&env, t->events, t->event_capacity * sizeof *t->events);
    hfn_times_init(t, &env);
}

bool hfn_times_make_threads(hfn_times *t, uint32_t thread_count)
{
    t->threads = make_array(&t->env, thread_count, sizeof *t->threads);
    t->event_ends = make_array(&t->env, thread_count, sizeof *t->event_ends);
    t->thread_count = thread_count;
    return t->threads && t->event_ends;
}

bool hfn_times_make_nodes(hfn_times *t, uint32_t node_count, bool with_allocs)
{
    t->nodes = make_array(&t->env, node_count, sizeof *t->nodes);
    t->allocs = with_allocs ? make_array(&t->env, node_count, sizeof *t->allocs) : NULL;
    t->node_count = t->node_capacity = node_count;
    return t->nodes && (t->allocs || !with_allocs);
}

bool hfn_times_make_slow_calls(hfn_times *t, uint32_t count)
{
    t->slow = make_array(&t->env, count, sizeof *t->slow);
    t->slow_count = t->slow_capacity = count;
    return t->slow != NULL;
}

bool hfn_times_copy(hfn_times *t, const hfn_times *from)
{
    static const hfn_packed nothing;

    t->present = from->present;
    t->header = from->header;
    if (!hfn_times_make_threads(t, from->thread_count) ||
        !hfn_times_make_nodes(t, from->node_count, from->allocs != NULL) ||
        !hfn_times_make_slow_calls(t, from->slow_count) ||
        !hfn_packed_subtract(&t->histograms, &from->histograms, &nothing,
                             HOTFN_HISTOGRAM_BUCKETS) ||
        !hfn_times_add_events(t, from->events, from->event_count)) {
        return false;
    }
    for (size_t i = 0; i < from->entry_count; i++) {
        if (!hfn_times_add_entry(t, &from->entries[i])) {
            return false;
        }
    }
    if (!hfn_grow_array(&t->env, (void **)&t->open, &t->open_capacity, from->open_count,
                        sizeof *t->open)) {
        return false;
    }
    for (size_t i = 0; i < from->open_count; i++) {
        t->open[t->open_count++] = from->open[i];
    }
    for (uint32_t i = 0; i < from->thread_count; i++) {
        t->threads[i] = from->threads[i];
        t->event_ends[i] = from->event_ends[i];
    }
    for (uint32_t i = 0; i < from->node_count; i++) {
        t->nodes[i] = from->nodes[i];
        if (from->allocs) {
            t->allocs[i] = from->allocs[i];
        }
    }
    for (uint32_t i = 0; i < from->slow_count; i++) {
        t->slow[i] = from->slow[i];
    }
    return true;
}

bool hfn_times_add_entry(hfn_times *t, const hfn_time_entry *entry)
{
    if (!hfn_grow_array(&t->env, (void **)&t->entries, &t->entry_capacity, t->entry_count + 1,
                        sizeof *t->entries)) {
        return false;
    }
    t->entries[t->entry_count++] = *entry;
    return true;
}

bool hfn_times_add_events(hfn_times *t, const hfn_time_event *events, uint64_t count)
{
    size_t capacity = (size_t)t->event_capacity;

    if (!hfn_grow_array(&t->env, (void **)&t->events, &capacity, (size_t)(t->event_count + count),
                        sizeof *t->events)) {
        return false;
    }
    t->event_capacity = capacity;
    if (count > 0) {
        memcpy(t->events + t->event_count, events, (size_t)count * sizeof *events);
    }
    t->event_count += count;
    return true;
}

/* ---- The tree: depth first, by way of lists of children. */

typedef struct tree {
    uint32_t *first, *next; /* child, sibling; UINT32_MAX: none */
    uint32_t *place;        /* a node's new index, UINT32_MAX: dropped */
    uint32_t *order;        /* and back */
    uint32_t placed, tops;
} tree;

#define NONE UINT32_MAX

static bool is_root(const hfn_times *t, uint32_t i)
{
    return t->nodes[i].parent == i;
}

static bool is_sound(const hfn_times *t, uint32_t i, uint32_t slots, uint32_t threads)
{
    const hfn_time_node *n = &t->nodes[i];

    return n->thread < threads && n->slot < slots &&
           (n->parent < t->node_count || n->parent == NONE);
}

/* Backwards, so that the lists hold the nodes in the order of their indices. */
static void link_nodes(const hfn_times *t, tree *w, uint32_t slots, uint32_t threads)
{
    w->tops = NONE;
    for (uint32_t i = t->node_count; i-- > 0;) {
        uint32_t parent = t->nodes[i].parent;

        if (is_root(t, i) || !is_sound(t, i, slots, threads)) {
            continue;
        }
        if (parent == NONE || is_root(t, parent)) {
            w->next[i] = w->tops;
            w->tops = i;
        } else {
            w->next[i] = w->first[parent];
            w->first[parent] = i;
        }
    }
}

/* Down to the first child, else to the next sibling of the nearest ancestor that has one.  A node
 * without a path to a root is never reached. */
static void walk_nodes(const hfn_times *t, tree *w)
{
    uint32_t at = w->tops;

    while (at != NONE) {
        w->place[at] = w->placed;
        w->order[w->placed++] = at;
        if (w->first[at] != NONE) {
            at = w->first[at];
            continue;
        }
        while (w->next[at] == NONE) {
            uint32_t parent = t->nodes[at].parent;

            if (parent == NONE || is_root(t, parent)) {
                return;
            }
            at = parent;
        }
        at = w->next[at];
    }
}

static bool rebuild_tree(hfn_times *t, const tree *w)
{
    hfn_time_node *nodes = make_array(&t->env, w->placed, sizeof *nodes);
    hotfn_alloc_cell *allocs = t->allocs ? make_array(&t->env, w->placed, sizeof *allocs) : NULL;

    if (!nodes || (t->allocs && !allocs)) {
        free_array(&t->env, nodes, w->placed, sizeof *nodes);
        free_array(&t->env, allocs, w->placed, sizeof *allocs);
        return false;
    }
    for (uint32_t i = 0; i < w->placed; i++) {
        uint32_t parent = t->nodes[w->order[i]].parent;

        nodes[i] = t->nodes[w->order[i]];
        nodes[i].parent = parent == NONE ? NONE : w->place[parent]; /* NONE for a root */
        nodes[i].first_child = nodes[i].next_sibling = 0;
        if (allocs) {
            allocs[i] = t->allocs[w->order[i]];
        }
    }
    free_array(&t->env, t->nodes, t->node_capacity, sizeof *t->nodes);
    free_array(&t->env, t->allocs, t->node_capacity, sizeof *t->allocs);
    t->nodes = nodes;
    t->allocs = allocs;
    t->node_count = t->node_capacity = w->placed;
    return true;
}

static void validate_slow_calls(hfn_times *t, const tree *w, uint32_t slots, uint32_t threads,
                                uint32_t nodes_before)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < t->slow_count; i++) {
        hfn_slow_call *s = &t->slow[i];

        if (s->sequence == 0 || s->slot >= slots || s->thread >= threads) {
            continue;
        }
        s->node = s->node < nodes_before ? w->place[s->node] : NONE;
        t->slow[kept++] = *s;
    }
    t->slow_count = kept;
}

static uint32_t count_roots(const hfn_times *t)
{
    uint32_t roots = 0;

    for (uint32_t i = 0; i < t->node_count; i++) {
        roots += is_root(t, i);
    }
    return roots;
}

static bool order_tree(hfn_times *t, uint32_t slots, uint32_t threads)
{
    uint32_t before = t->node_count;
    uint32_t *words = make_array(&t->env, 4ull * before, sizeof *words);
    tree w = { .first = words };
    bool done;

    if (!words) {
        return false;
    }
    memset(words, 0xff, 4ull * before * sizeof *words);
    w.next = words + before;
    w.place = w.next + before;
    w.order = w.place + before;
    link_nodes(t, &w, slots, threads);
    walk_nodes(t, &w);
    t->nodes_dropped = before - count_roots(t) - w.placed;
    done = rebuild_tree(t, &w);
    if (done) {
        validate_slow_calls(t, &w, slots, threads, before);
    }
    free_array(&t->env, words, 4ull * before, sizeof *words);
    return done;
}

/* ---- Slow calls, entries and events. */

static bool is_earlier(const void *a, const void *b)
{
    return ((const hfn_slow_call *)a)->sequence < ((const hfn_slow_call *)b)->sequence;
}

static bool sort_slow_calls(hfn_times *t)
{
    hfn_slow_call *room, *sorted;

    if (!t->slow) {
        return true;
    }
    room = make_array(&t->env, t->slow_capacity, sizeof *room);
    if (!room) {
        return false;
    }
    sorted = hfn_sort_items(t->slow, room, t->slow_count, sizeof *room, is_earlier);
    free_array(&t->env, sorted == t->slow ? room : t->slow, t->slow_capacity, sizeof *room);
    t->slow = sorted;
    return true;
}

static bool is_slow(const hfn_times *t, const hfn_unreturned *item)
{
    return item->kind != HFN_UNRETURNED_RUNS && t->header.slow_ticks > 0 &&
           item->ticks >= t->header.slow_ticks;
}

/* A program that hangs is killed inside its slow calls, so these never end.  They are added after
 * the slow calls of the ring. */
static bool add_slow_open_calls(hfn_times *t)
{
    uint32_t count = t->slow_count;
    hfn_slow_call *slow;

    for (size_t i = 0; i < t->open_count; i++) {
        count += is_slow(t, &t->open[i]);
    }
    if (count == t->slow_count) {
        return true;
    }
    slow = make_array(&t->env, count, sizeof *slow);
    if (!slow) {
        return false;
    }
    if (t->slow_count > 0) {
        memcpy(slow, t->slow, t->slow_count * sizeof *slow);
    }
    for (size_t i = 0; i < t->open_count; i++) {
        if (is_slow(t, &t->open[i])) {
            slow[t->slow_count++] = (hfn_slow_call){ .sequence = ++t->header.slow_used,
                                                     .start_ticks = t->open[i].start,
                                                     .ticks = t->open[i].ticks,
                                                     .node = t->open[i].node - 1,
                                                     .slot = t->open[i].slot,
                                                     .thread = t->open[i].thread };
        }
    }
    free_array(&t->env, t->slow, t->slow_capacity, sizeof *t->slow);
    t->slow = slow;
    t->slow_capacity = count;
    return true;
}

static void validate_entries(hfn_times *t, uint32_t slots, uint32_t threads)
{
    size_t kept = 0;

    for (size_t i = 0; i < t->entry_count; i++) {
        hfn_time_entry *e = &t->entries[i];

        if (e->slot >= slots || e->thread >= threads) {
            continue;
        }
        if (e->cell.histogram > t->histograms.row_count) {
            e->cell.histogram = 0;
        }
        t->entries[kept++] = *e;
    }
    t->entry_count = kept;
}

static void validate_events(hfn_times *t, uint32_t slots)
{
    uint64_t kept = 0, at = 0;

    for (uint32_t i = 0; i < t->thread_count; i++) {
        for (; at < t->event_ends[i]; at++) {
            const hfn_time_event *e = &t->events[at];

            if (e->slot < slots && (e->kind == 1 || e->kind == 2)) {
                t->events[kept++] = *e;
            }
        }
        t->event_ends[i] = kept;
    }
    t->event_count = kept;
}

bool hfn_times_validate(hfn_times *t, uint32_t slot_count, uint32_t thread_count)
{
    uint32_t threads = thread_count < t->thread_count ? thread_count : t->thread_count;

    if (!t->present) {
        return true;
    }
    if (!add_slow_open_calls(t)) {
        return false;
    }
    hfn_times_end_open(t);
    if (!order_tree(t, slot_count, threads) || !sort_slow_calls(t)) {
        return false;
    }
    validate_entries(t, slot_count, threads);
    validate_events(t, slot_count);
    return true;
}

/* ---- The difference of two states. */

static void subtract_64(uint64_t *from, uint64_t amount)
{
    *from -= amount < *from ? amount : *from;
}

static void subtract_cell(hfn_time_cell *cell, const hfn_time_cell *from)
{
    subtract_64(&cell->total_ticks, from->total_ticks);
    subtract_64(&cell->self_ticks, from->self_ticks);
    subtract_64(&cell->timed_calls, from->timed_calls);
    subtract_64(&cell->callee_timed, from->callee_timed);
    subtract_64(&cell->within_timed, from->within_timed);
    subtract_64(&cell->waited_ticks, from->waited_ticks);
}

static void subtract_entries(hfn_times *t, const hfn_times *from)
{
    size_t k = 0;

    for (size_t i = 0; i < t->entry_count; i++) {
        hfn_time_entry *e = &t->entries[i];

        while (k < from->entry_count &&
               (from->entries[k].thread < e->thread ||
                (from->entries[k].thread == e->thread && from->entries[k].slot < e->slot))) {
            k++;
        }
        if (k < from->entry_count && from->entries[k].thread == e->thread &&
            from->entries[k].slot == e->slot) {
            subtract_cell(&e->cell, &from->entries[k].cell);
            subtract_64(&e->total_waited_ticks, from->entries[k].total_waited_ticks);
        }
    }
}

static void subtract_nodes(hfn_times *t, const hfn_times *from)
{
    uint32_t count = t->node_count < from->node_count ? t->node_count : from->node_count;

    for (uint32_t i = 0; i < count; i++) {
        subtract_64(&t->nodes[i].calls, from->nodes[i].calls);
        subtract_64(&t->nodes[i].total_ticks, from->nodes[i].total_ticks);
        subtract_64(&t->nodes[i].timed_calls, from->nodes[i].timed_calls);
        subtract_64(&t->nodes[i].waited_ticks, from->nodes[i].waited_ticks);
        if (t->allocs && from->allocs) {
            subtract_64(&t->allocs[i].allocated_bytes, from->allocs[i].allocated_bytes);
            subtract_64(&t->allocs[i].allocated_blocks, from->allocs[i].allocated_blocks);
            subtract_64(&t->allocs[i].freed_bytes, from->allocs[i].freed_bytes);
            subtract_64(&t->allocs[i].freed_blocks, from->allocs[i].freed_blocks);
        }
    }
}

static void subtract_32(uint32_t *from, uint32_t amount)
{
    *from -= amount < *from ? amount : *from;
}

static void subtract_header(hfn_time_header *h, const hfn_time_header *from)
{
    subtract_32(&h->slow_used, from->slow_used);
    subtract_32(&h->nodes_merged, from->nodes_merged);
    subtract_32(&h->abandoned_exits, from->abandoned_exits);
    subtract_32(&h->clock_went_back, from->clock_went_back);
}

/* Keep the latest events of each thread, as many as are new. */
static void keep_new_events(hfn_times *t, const hfn_times *from)
{
    uint64_t begin = 0, kept = 0;

    for (uint32_t i = 0; i < t->thread_count; i++) {
        uint64_t end = t->event_ends[i], there = end - begin;

        if (i < from->thread_count) {
            subtract_64(&t->threads[i].events, from->threads[i].events);
        }
        if (there > t->threads[i].events) {
            begin += there - t->threads[i].events;
        }
        for (; begin < end; begin++) {
            t->events[kept++] = t->events[begin];
        }
        t->event_ends[i] = kept;
    }
    t->event_count = kept;
}

/* Drop the slow calls that `from` has too. */
static void drop_slow_calls(hfn_times *t, const hfn_times *from)
{
    uint64_t latest = 0;
    uint32_t kept = 0;

    for (uint32_t i = 0; i < from->slow_count; i++) {
        latest = from->slow[i].sequence > latest ? from->slow[i].sequence : latest;
    }
    for (uint32_t i = 0; i < t->slow_count; i++) {
        if (t->slow[i].sequence > latest) {
            t->slow[kept++] = t->slow[i];
        }
    }
    t->slow_count = kept;
}

bool hfn_times_subtract(hfn_times *t, const hfn_times *from)
{
    hfn_packed histograms;

    if (!t->present || !from->present) {
        return true;
    }
    if (!add_slow_open_calls(t)) {
        return false;
    }
    hfn_packed_init(&histograms, &t->env);
    if (!hfn_packed_subtract(&histograms, &t->histograms, &from->histograms,
                             HOTFN_HISTOGRAM_BUCKETS)) {
        hfn_packed_finish(&histograms);
        return false;
    }
    hfn_packed_finish(&t->histograms);
    t->histograms = histograms;
    hfn_times_end_open(t);
    for (uint32_t i = 0; i < t->thread_count && i < from->thread_count; i++) {
        subtract_64(&t->threads[i].busy_ticks, from->threads[i].busy_ticks);
        if (from->threads[i].last_tick > t->threads[i].first_tick) {
            t->threads[i].first_tick = from->threads[i].last_tick;
        }
    }
    subtract_entries(t, from);
    subtract_nodes(t, from);
    hfn_times_subtract_open(t, from);
    subtract_header(&t->header, &from->header);
    drop_slow_calls(t, from);
    keep_new_events(t, from);
    return true;
}
