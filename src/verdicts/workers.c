/* SPDX-License-Identifier: MIT */
/* A parallel loop over items, in worker threads that no signal handler of the program interrupts.
 */
#include "verdicts/workers.h"

#include "os/process.h"
#include "os/threads.h"

#define MAX_THREADS 64u

typedef struct loop {
    hfn_work_fn work;
    void *user;
    uint32_t item_count;
    uint32_t next; /* atomic */
} loop;

static void run_items(loop *l, hfn_progress *progress)
{
    for (;;) {
        /* Relaxed: items are independent; hfn_os_join_thread orders what they wrote. */
        uint32_t item = __atomic_fetch_add(&l->next, 1, __ATOMIC_RELAXED);
        if (item >= l->item_count) {
            return;
        }
        hfn_progress_reach(progress, progress->now.total * item / l->item_count);
        l->work(l->user, item);
    }
}

static void run_helper(void *user)
{
    hfn_progress none = { 0 };

    run_items(user, &none);
}

void hfn_workers_run(uint32_t threads, uint32_t item_count, hfn_work_fn work, void *user,
                     hfn_progress progress)
{
    loop l = { .work = work, .user = user, .item_count = item_count };
    hfn_os_thread helpers[MAX_THREADS];
    uint32_t wanted = threads < MAX_THREADS ? threads : MAX_THREADS;
    uint32_t started = 0;

    if (wanted > item_count) {
        wanted = item_count;
    }
    while (started + 1 < wanted && hfn_os_start_thread(&helpers[started], run_helper, &l)) {
        started++;
    }
    run_items(&l, &progress);
    for (uint32_t i = 0; i < started; i++) {
        hfn_os_join_thread(&helpers[i]);
    }
    hfn_progress_end(&progress);
}

uint32_t hfn_workers_default(void)
{
    uint32_t online = hfn_os_count_processors();

    return online < MAX_THREADS ? online : MAX_THREADS;
}
