/* SPDX-License-Identifier: MIT */
/* A thread that sleeps and works while the child runs, and is woken when it ends. */
#include "run.h"

#include <errno.h>
#include <time.h>

bool run_watcher_start(run_watcher *w, void *(*work)(void *), void *user)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->ended, &monotonic);
    return w->started = pthread_create(&w->thread, NULL, work, user) == 0;
}

bool run_watcher_sleep(run_watcher *w, uint64_t ns)
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

void run_watcher_stop(run_watcher *w)
{
    if (w->started) {
        pthread_mutex_lock(&w->lock);
        w->child_ended = true;
        pthread_cond_signal(&w->ended);
        pthread_mutex_unlock(&w->lock);
        pthread_join(w->thread, NULL);
    }
}
