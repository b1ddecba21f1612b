/* SPDX-License-Identifier: MIT */
/* A timed record without a timed program: a small model of a program and of the engine, which fills
 * the same memory. */
#ifndef HFN_TESTS_PROFILE_TIMED_H
#define HFN_TESTS_PROFILE_TIMED_H

#include "base/memory.h"
#include "profile/profile.h"
#include "records/sample.h"

#define TIMED_SLOTS 16u
#define TIMED_THREADS 4u
#define TIMED_NODES 4096u
#define TIMED_DEPTH 64u
#define TIMED_EVENTS 65536u

typedef struct timed_frame {
    uint32_t slot, node;
    uint64_t start, callees, timed_before;
} timed_frame;

typedef struct timed_thread {
    uint64_t clock;
    uint64_t timed, busy;
    timed_frame stack[TIMED_DEPTH];
    uint32_t depth, root;
} timed_thread;

typedef struct timed_model {
    uint64_t inside, outside; /* ticks that were subtracted for a call */
    uint64_t slow;            /* 0: none is slow */
    hfn_time_cell cells[TIMED_THREADS][TIMED_SLOTS];
    uint64_t calls[TIMED_THREADS][TIMED_SLOTS];
    uint64_t true_total[TIMED_SLOTS], true_self[TIMED_SLOTS];
    hfn_time_node nodes[TIMED_NODES];
    hotfn_alloc_cell allocs[TIMED_NODES];
    uint32_t node_count, slow_count;
    uint64_t histograms[TIMED_SLOTS][HOTFN_HISTOGRAM_BUCKETS];
    hfn_slow_call slow_calls[64];
    hfn_time_event events[TIMED_THREADS][TIMED_EVENTS];
    uint64_t event_count[TIMED_THREADS];
    timed_thread threads[TIMED_THREADS];
} timed_model;

static inline uint32_t timed_bucket(uint64_t ticks)
{
    uint32_t exponent = ticks ? 63u - (uint32_t)__builtin_clzll(ticks) : 0;

    if (ticks < 64) {
        return (uint32_t)ticks;
    }
    return exponent > 43 ? HOTFN_HISTOGRAM_BUCKETS - 1
                         : 32 * (exponent - 5) + (uint32_t)(ticks >> (exponent - 5));
}

static inline uint32_t timed_node(timed_model *m, uint32_t thread, uint32_t parent, uint32_t slot)
{
    for (uint32_t i = 0; i < m->node_count; i++) {
        if (m->nodes[i].parent == parent && i != parent && m->nodes[i].slot == slot) {
            return i;
        }
    }
    m->nodes[m->node_count] = (hfn_time_node){ .parent = parent, .slot = slot, .thread = thread };
    return m->node_count++;
}

static inline void timed_event(timed_model *m, uint32_t thread, uint32_t slot, uint32_t kind)
{
    if (m->event_count[thread] < TIMED_EVENTS) {
        m->events[thread][m->event_count[thread]++] =
            (hfn_time_event){ m->threads[thread].clock, slot, kind };
    }
}

static inline void timed_enter(timed_model *m, uint32_t thread, uint32_t slot)
{
    timed_thread *t = &m->threads[thread];
    timed_frame *f = &t->stack[t->depth];
    uint32_t parent;

    if (t->root == 0) {
        m->nodes[m->node_count] = (hfn_time_node){ .parent = m->node_count, .thread = thread };
        t->root = ++m->node_count;
    }
    parent = t->depth ? t->stack[t->depth - 1].node : t->root - 1;
    *f = (timed_frame){ .slot = slot, .start = t->clock };
    f->node = timed_node(m, thread, parent, slot);
    f->timed_before = t->timed++;
    m->nodes[f->node].calls++;
    m->calls[thread][slot]++;
    m->cells[thread][slot].open++;
    timed_event(m, thread, slot, 1);
    t->depth++;
}

static inline void timed_work(timed_model *m, uint32_t thread, uint64_t ticks)
{
    m->threads[thread].clock += ticks;
}

static inline void timed_exit(timed_model *m, uint32_t thread)
{
    timed_thread *t = &m->threads[thread];
    timed_frame *f = &t->stack[--t->depth];
    hfn_time_cell *c = &m->cells[thread][f->slot];
    uint64_t ticks = t->clock - f->start;

    c->timed_calls++;
    c->self_ticks += ticks - f->callees;
    m->true_self[f->slot] += ticks - f->callees;
    if (--c->open == 0) {
        c->total_ticks += ticks;
        m->true_total[f->slot] += ticks;
        c->within_timed += t->timed - f->timed_before;
    }
    c->max_ticks = c->max_ticks > ticks ? c->max_ticks : ticks;
    c->histogram = f->slot + 1;
    m->histograms[f->slot][timed_bucket(ticks)]++;
    m->nodes[f->node].total_ticks += ticks;
    m->nodes[f->node].timed_calls++;
    if (t->depth) {
        timed_frame *caller = &t->stack[t->depth - 1];

        caller->callees += ticks;
        m->cells[thread][caller->slot].callee_timed++;
    } else {
        t->busy += ticks;
    }
    if (m->slow && ticks >= m->slow && m->slow_count < 64) {
        m->slow_calls[m->slow_count] = (hfn_slow_call){ .sequence = m->slow_count + 1,
                                                        .start_ticks = f->start,
                                                        .ticks = ticks,
                                                        .node = f->node,
                                                        .slot = f->slot,
                                                        .thread = thread };
        m->slow_count++;
    }
    timed_event(m, thread, f->slot, 2);
}

static inline void timed_call(timed_model *m, uint32_t thread, uint32_t slot, uint64_t ticks)
{
    timed_enter(m, thread, slot);
    timed_work(m, thread, ticks);
    timed_exit(m, thread);
}

/* f calls itself depth times, and a leaf each time. */
static inline void timed_recurse(timed_model *m, uint32_t slot, uint32_t leaf, uint32_t depth)
{
    timed_enter(m, 0, slot);
    timed_work(m, 0, 1000);
    timed_call(m, 0, leaf, 100);
    if (depth > 0) {
        timed_recurse(m, slot, leaf, depth - 1);
    }
    timed_work(m, 0, 500);
    timed_exit(m, 0);
}

/* Slots: 0 alpha (the outermost), 1 beta::run (recursive), 2 gamma (a leaf); thread 1 calls gamma
 * only, from outside. */
static inline void timed_story(timed_model *m)
{
    timed_enter(m, 0, 0);
    for (uint32_t i = 0; i < 10; i++) {
        timed_work(m, 0, 10000);
        timed_recurse(m, 1, 2, i % 4);
        timed_call(m, 0, 2, 100 * (i + 1));
    }
    timed_exit(m, 0);
    for (uint32_t i = 1; i <= 100; i++) {
        timed_call(m, 1, 2, i * 1000);
        timed_work(m, 1, 50);
    }
}

static inline void timed_fill(hfn_times *t, const timed_model *m, uint32_t threads)
{
    t->present = true;
    t->header.flags = HOTFN_TIMING_TIMES | HOTFN_TIMING_HISTOGRAMS | HOTFN_TIMING_TREE |
                      HOTFN_TIMING_SLOW | HOTFN_TIMING_EVENTS | HOTFN_TIMING_ALLOC;
    t->header.version = HFN_TIMES_VERSION;
    t->header.clock = HOTFN_CLOCK_TSC;
    t->header.ticks_per_second = 1000000000;
    t->header.cost_inside_ticks = (uint32_t)m->inside * 256;
    t->header.cost_outside_ticks = (uint32_t)m->outside * 256;
    t->header.slow_ticks = m->slow;
    t->header.histogram_capacity = t->header.histograms_used = TIMED_SLOTS;
    t->header.slow_used = t->header.slow_capacity = m->slow_count;
    t->header.node_capacity = TIMED_NODES;
    t->header.nodes_used = m->node_count;
    CHECK(hfn_times_make_threads(t, threads));
    CHECK(hfn_times_make_nodes(t, m->node_count, true));
    CHECK(hfn_times_make_slow_calls(t, m->slow_count));
    memcpy(t->nodes, m->nodes, m->node_count * sizeof *t->nodes);
    memcpy(t->allocs, m->allocs, m->node_count * sizeof *t->allocs);
    memcpy(t->slow, m->slow_calls, m->slow_count * sizeof *t->slow);
    for (uint32_t i = 0; i < threads; i++) {
        t->threads[i].busy_ticks = m->threads[i].busy;
        t->threads[i].events = m->event_count[i];
        for (uint32_t s = 0; s < TIMED_SLOTS; s++) {
            hfn_time_entry e = { m->cells[i][s], s, i, 0 };

            if (e.cell.timed_calls) {
                CHECK(hfn_times_add_entry(t, &e));
            }
        }
        CHECK(hfn_times_add_events(t, m->events[i], m->event_count[i]));
        t->event_ends[i] = t->event_count;
    }
    for (uint32_t s = 0; s < TIMED_SLOTS; s++) {
        CHECK(hfn_packed_append(&t->histograms, m->histograms[s], HOTFN_HISTOGRAM_BUCKETS) &&
              hfn_packed_end_row(&t->histograms));
    }
}

/* Add times to the record at path, which has counts only. */
static inline void timed_attach(const char *path, const timed_model *m, uint32_t threads)
{
    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_record *r = NULL;

    if (!CHECK_EQ_I64(hotfn_record_open(&r, path, NULL, &err), HOTFN_OK)) {
        printf("# %s\n", err.text);
        exit(1);
    }
    timed_fill(&r->times, m, threads);
    CHECK(hfn_times_validate(&r->times, r->slot_count, r->thread_count));
    CHECK_EQ_I64(hfn_record_write(r, path, &err), HOTFN_OK);
    hotfn_record_close(r);
}

static inline void timed_write_counts(const char *path, const timed_model *m, uint32_t threads)
{
    hfn_live *live = sample_live(NULL);

    for (uint32_t i = 0; i < threads; i++) {
        for (uint32_t s = 0; s < 3; s++) {
            sample_count(live, i, 70, 70 + i, s, m->calls[i][s]);
        }
    }
    CHECK_EQ_I64(hfn_live_finish(live, path, HOTFN_RECORD_FINISHED, 0, NULL, NULL, NULL), HOTFN_OK);
    hfn_live_close(live);
}

/* Write the story as a finished record.  A call costs `inside` ticks of its own time and `outside`
 * ticks of its caller's; a call of `slow` ticks or more is slow. */
static inline timed_model *timed_write_slow(const char *path, uint64_t inside, uint64_t outside,
                                            uint64_t slow)
{
    timed_model *m = calloc(1, sizeof *m);

    m->inside = inside;
    m->outside = outside;
    m->slow = slow;
    timed_story(m);
    for (uint32_t i = 0; i < m->node_count; i++) { /* memory: different for each node */
        m->allocs[i] = (hotfn_alloc_cell){ 1000 + i, 10, 500, 5 };
    }
    timed_write_counts(path, m, 2);
    timed_attach(path, m, 2);
    return m;
}

static inline timed_model *timed_write(const char *path, uint64_t inside, uint64_t outside)
{
    return timed_write_slow(path, inside, outside, 90000);
}

#endif
