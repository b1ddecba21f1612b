/* SPDX-License-Identifier: MIT */
/* A thread that works at intervals while the child runs; it is woken when the child has ended. */
#include "launch/launch.h"
#include "os/clock.h"

bool hfn_watcher_start(hfn_watcher *w, hfn_os_thread_fn work, void *user)
{
    atomic_init(&w->has_child_ended, 0);
    w->is_started = hfn_os_start_thread(&w->thread, work, user);
    return w->is_started;
}

bool hfn_watcher_sleep(hfn_watcher *w, uint64_t ns)
{
    uint64_t begin_ns = hfn_os_monotonic_ns(), passed_ns = 0;

    /* Pairs with the release store in hfn_watcher_stop. */
    while (!atomic_load_explicit(&w->has_child_ended, memory_order_acquire)) {
        if (passed_ns >= ns) {
            return true;
        }
        hfn_os_wait_word(&w->has_child_ended, 0, ns - passed_ns);
        passed_ns = hfn_os_monotonic_ns() - begin_ns;
    }
    return false;
}

void hfn_watcher_stop(hfn_watcher *w)
{
    if (w->is_started) {
        /* Pairs with the acquire load in hfn_watcher_sleep. */
        atomic_store_explicit(&w->has_child_ended, 1, memory_order_release);
        hfn_os_wake_waiters(&w->has_child_ended);
        hfn_os_join_thread(&w->thread);
        w->is_started = false;
    }
}
