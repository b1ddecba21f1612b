/* SPDX-License-Identifier: MIT */
/* A window in time: two snapshots of the live counters, taken from outside while the target runs. */
#include "run.h"

#include <stdio.h>

static void *watch(void *user)
{
    run_window *w = user;
    if (!run_watcher_sleep(&w->watcher, w->after_ns)) {
        return NULL;
    }
    hotfn_live_snapshot(&w->from, w->live, NULL);
    if (w->for_ns && run_watcher_sleep(&w->watcher, w->for_ns)) {
        hotfn_live_snapshot(&w->to, w->live, NULL);
    }
    return NULL;
}

void run_window_start(run_window *w, const hotfn_live *live, uint64_t after_ns, uint64_t for_ns)
{
    *w = (run_window){ .live = live, .after_ns = after_ns, .for_ns = for_ns };
    if (after_ns > 0 || for_ns > 0) {
        run_watcher_start(&w->watcher, watch, w);
    }
}

/* The child ended: whatever snapshot is still missing is the end. */
void run_window_stop(run_window *w)
{
    run_watcher_stop(&w->watcher);
    if (w->watcher.started && !w->from) { /* nothing lies inside */
        fputs("hotfn run: the program ended before the window began (--after): no calls are in the "
              "record\n",
              stderr);
        hotfn_live_snapshot(&w->from, w->live, NULL);
    }
}
