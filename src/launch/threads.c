/* SPDX-License-Identifier: MIT */
/* Reads the names and processor times of the target's threads while it runs, ten times a second or,
 * with many threads, for at most a 50th of a processor's time; and when it has ended, before it is
 * reaped. */
#include "base/status.h"
#include "launch/launch.h"
#include "os/clock.h"

#define INTERVAL_NS UINT64_C(100000000)
#define MAX_SHARE 50u

static uint64_t read_all(hfn_live *live)
{
    uint64_t begin_ns = hfn_os_monotonic_ns(), spent_ns;

    hfn_live_read_threads(live);
    spent_ns = hfn_os_monotonic_ns() - begin_ns;
    return spent_ns * MAX_SHARE > INTERVAL_NS ? spent_ns * MAX_SHARE : INTERVAL_NS;
}

static void watch_threads(void *user)
{
    hfn_thread_watch *w = user;
    uint64_t wait_ns = INTERVAL_NS;

    while (hfn_watcher_sleep(&w->watcher, wait_ns)) {
        wait_ns = read_all(w->live);
    }
}

void hfn_thread_watch_start(hotfn_launch *l)
{
    l->threads.live = l->live;
    if (!hfn_watcher_start(&l->threads.watcher, watch_threads, &l->threads)) {
        hfn_log_message(&l->env, HOTFN_LOG_WARNING,
                        "no thread can be started: names and processor times of threads are those "
                        "at the end");
    }
}

void hfn_thread_watch_stop(hotfn_launch *l)
{
    hfn_watcher_stop(&l->threads.watcher);
    hfn_live_read_threads(l->live);
}
