/* SPDX-License-Identifier: MIT */
/* --budget: a thread that looks at the target's counts from time to time and takes out what costs too
 * much.  It holds the target by ptrace for moments; who waits for the target must know that, and must
 * not reap it before this thread has ended. */
#include "run.h"
#include "verbs.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

/* False when the target has ended. */
static bool sleep_for(run_budget *b, uint64_t ns)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_sec += (time_t)(ns / 1000000000u);
    at.tv_nsec += (long)(ns % 1000000000u);
    if (at.tv_nsec >= 1000000000) {
        at.tv_sec++;
        at.tv_nsec -= 1000000000;
    }
    int waited = 0;
    pthread_mutex_lock(&b->lock);
    while (!b->child_ended && waited != ETIMEDOUT) {
        waited = pthread_cond_timedwait(&b->ended, &b->lock, &at);
    }
    bool ended = b->child_ended;
    pthread_mutex_unlock(&b->lock);
    return !ended;
}

static void *keep(void *user)
{
    run_budget *b = user;
    uint64_t wait_ns = 0;
    while (sleep_for(b, wait_ns)) {
        wait_ns = hotfn_budget_step(b->budget, b->pid);
    }
    return NULL;
}

bool run_budget_start(run_budget *b, hotfn_live *live, hotfn_handover *handover, uint32_t pid,
                      const hotfn_env *env)
{
    pthread_condattr_t monotonic;
    hotfn_error err = HOTFN_ERROR_INIT;
    b->pid = pid;
    if (hotfn_budget_create(&b->budget, live, handover, env, &err) != HOTFN_OK) {
        hotfn_tool_fail("run", &err);
        return false;
    }
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&b->lock, NULL);
    pthread_cond_init(&b->ended, &monotonic);
    b->started = pthread_create(&b->thread, NULL, keep, b) == 0;
    return b->started;
}

void run_budget_stop(run_budget *b)
{
    if (b->started) {
        pthread_mutex_lock(&b->lock);
        b->child_ended = true;
        pthread_cond_signal(&b->ended);
        pthread_mutex_unlock(&b->lock);
        pthread_join(b->thread, NULL);
    }
    hotfn_budget_destroy(b->budget);
}
