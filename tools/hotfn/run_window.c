/* SPDX-License-Identifier: MIT */
/* A window in time: two snapshots of the live counters, taken from outside while the target runs. */
#include "run.h"

#include <errno.h>
#include <time.h>

/* Sleep for ns from now on; false when the child ended before. */
static bool sleep_for(run_window *w, uint64_t ns)
{
    struct timespec at;
    int waited = 0;
    clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_sec += (time_t)(ns / 1000000000u);
    at.tv_nsec += (long)(ns % 1000000000u);
    if (at.tv_nsec >= 1000000000) {
        at.tv_sec++;
        at.tv_nsec -= 1000000000;
    }
    pthread_mutex_lock(&w->lock);
    while (!w->child_ended && waited != ETIMEDOUT) {
        waited = pthread_cond_timedwait(&w->ended, &w->lock, &at);
    }
    bool ended = w->child_ended;
    pthread_mutex_unlock(&w->lock);
    return !ended;
}

static void *watch(void *user)
{
    run_window *w = user;
    if (!sleep_for(w, w->after_ns)) {
        return NULL;
    }
    hotfn_live_snapshot(&w->from, w->live, NULL);
    if (w->for_ns && sleep_for(w, w->for_ns)) {
        hotfn_live_snapshot(&w->to, w->live, NULL);
    }
    return NULL;
}

void run_window_start(run_window *w, const hotfn_live *live, uint64_t after_ns, uint64_t for_ns)
{
    pthread_condattr_t monotonic;
    *w = (run_window){ .live = live, .after_ns = after_ns, .for_ns = for_ns };
    if (after_ns == 0 && for_ns == 0) {
        return;
    }
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->ended, &monotonic);
    w->started = pthread_create(&w->thread, NULL, watch, w) == 0;
}

/* The child ended: whatever snapshot is still missing is the end. */
void run_window_stop(run_window *w)
{
    if (!w->started) {
        return;
    }
    pthread_mutex_lock(&w->lock);
    w->child_ended = true;
    pthread_cond_signal(&w->ended);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
    if (!w->from) { /* it ended before the window began: nothing lies inside */
        hotfn_live_snapshot(&w->from, w->live, NULL);
    }
}
