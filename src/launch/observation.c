/* SPDX-License-Identifier: MIT */
/* An observation frame: the record covers the time between two snapshots of the live counters,
 * which are taken from outside while the target runs. */
#include "base/status.h"
#include "launch/launch.h"

static void take_snapshots(void *user)
{
    hfn_observation *o = user;

    if (!hfn_watcher_sleep(&o->watcher, o->after_ns)) {
        return;
    }
    hfn_live_snapshot(&o->from, o->live, NULL);
    if (o->for_ns && hfn_watcher_sleep(&o->watcher, o->for_ns)) {
        hfn_live_snapshot(&o->to, o->live, NULL);
    }
}

void hfn_observation_start(hotfn_launch *l)
{
    hfn_observation *o = &l->observation;

    o->live = l->live;
    o->after_ns = l->options.after_ns;
    o->for_ns = l->options.for_ns;
    if ((o->after_ns > 0 || o->for_ns > 0) && !hfn_watcher_start(&o->watcher, take_snapshots, o)) {
        hfn_log_message(&l->env, HOTFN_LOG_ERROR,
                        "no thread can be started: calls are counted from the start to the end");
    }
}

/* If there is no second snapshot, the observation lasts until the end of the program. */
void hfn_observation_stop(hotfn_launch *l)
{
    hfn_observation *o = &l->observation;
    bool was_started = o->watcher.is_started;

    hfn_watcher_stop(&o->watcher);
    if (was_started && !o->from) {
        hfn_log_message(&l->env, HOTFN_LOG_ERROR,
                        "the program ended before the observation began: the record has no calls");
        hfn_live_snapshot(&o->from, o->live, NULL);
    }
}
