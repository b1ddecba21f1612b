/* SPDX-License-Identifier: MIT */
/* A thread that sleeps and works while the child runs; its sleep ends when the child has ended. */
#include "launch/launch.h"

#include <errno.h>
#include <time.h>

bool hfn_watcher_start(hfn_watcher *w, void *(*work)(void *), void *user)
{
    pthread_condattr_t monotonic;

    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->ended, &monotonic);
    pthread_condattr_destroy(&monotonic);
    w->has_child_ended = false;
    w->is_started = pthread_create(&w->thread, NULL, work, user) == 0;
    return w->is_started;
}

bool hfn_watcher_sleep(hfn_watcher *w, uint64_t ns)
{
    struct timespec until;
    int waited = 0;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += (time_t)(ns / 1000000000u);
    until.tv_nsec += (long)(ns % 1000000000u);
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    pthread_mutex_lock(&w->lock);
    while (!w->has_child_ended && waited != ETIMEDOUT) {
        waited = pthread_cond_timedwait(&w->ended, &w->lock, &until);
    }
    bool ended = w->has_child_ended;
    pthread_mutex_unlock(&w->lock);
    return !ended;
}

void hfn_watcher_stop(hfn_watcher *w)
{
    if (w->is_started) {
        pthread_mutex_lock(&w->lock);
        w->has_child_ended = true;
        pthread_cond_signal(&w->ended);
        pthread_mutex_unlock(&w->lock);
        pthread_join(w->thread, NULL);
        w->is_started = false;
    }
}
