/* SPDX-License-Identifier: MIT */
/* Each call is a zone (counters/timing/zone.h), so it is in the call tree, and has a total and a
 * self time, like a call of a function.  Only the thread itself uses its entry of the table; if an
 * ended thread left calls open, the next thread with its entry forgets them. */
#include "runtimes/art_calls.h"

#include "counters/thread_row.h"
#include "counters/timing/zone.h"
#include "os/os.h"

enum {
    MAX_THREADS = 1024, /* a power of two */
    MAX_PROBES = 16,
    MAX_DEPTH = 4096,
};

typedef struct open_call {
    hfn_time_frame frame;
    uint64_t method;
} open_call;

typedef struct app_thread {
    uint64_t thread; /* atomic; 0: free */
    const void *row; /* of the system's thread that had the latest event */
    open_call *calls;
    uint32_t depth;
    uint32_t deeper; /* open calls for which there is no room */
} app_thread;

static app_thread *threads;

bool hfn_art_calls_open(void)
{
    if (!threads) {
        threads = hfn_os_map_pages(MAX_THREADS * sizeof *threads);
    }
    return threads != NULL;
}

/* NULL: there is no room. */
static app_thread *find_thread(uint64_t thread)
{
    uint32_t at = (uint32_t)(thread * UINT64_C(0x9E3779B97F4A7C15) >> 40);

    for (uint32_t i = 0; i < MAX_PROBES; i++) {
        app_thread *t = &threads[(at + i) % MAX_THREADS];
        uint64_t before = __atomic_load_n(&t->thread, __ATOMIC_RELAXED);

        if (before == thread ||
            (before == 0 && (__atomic_compare_exchange_n(&t->thread, &before, thread, false,
                                                         __ATOMIC_RELAXED, __ATOMIC_RELAXED) ||
                             before == thread))) {
            if (t->row != hfn_thread_row) {
                t->depth = t->deeper = 0;
            }
            if (!t->calls) {
                t->calls = hfn_os_map_pages(MAX_DEPTH * sizeof *t->calls);
            }
            return t;
        }
    }
    return NULL;
}

/* Count the call; its time remains in its caller's. */
static void count_call(uint32_t slot)
{
    hfn_time_frame frame;

    hfn_zone_enter(&frame, slot);
    hfn_zone_leave(&frame);
}

void hfn_art_calls_enter(uint64_t thread, uint64_t method, uint32_t slot)
{
    app_thread *t = find_thread(thread);

    if (!t || !t->calls || t->depth == MAX_DEPTH) {
        count_call(slot);
        if (t) {
            t->deeper++;
        }
        return;
    }
    t->calls[t->depth].method = method;
    hfn_zone_enter(&t->calls[t->depth++].frame, slot);
    t->row = hfn_thread_row;
}

void hfn_art_calls_leave(uint64_t thread, uint64_t method)
{
    app_thread *t = find_thread(thread);
    uint32_t at = t ? t->depth : 0;

    if (t && t->deeper > 0) {
        t->deeper--;
        return;
    }
    while (at > 0 && t->calls[at - 1].method != method) {
        at--;
    }
    while (at > 0 && t->depth >= at) {
        hfn_zone_leave(&t->calls[--t->depth].frame);
    }
}
