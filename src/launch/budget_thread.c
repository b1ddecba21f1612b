/* SPDX-License-Identifier: MIT */
/* The thread that enforces the budget: it samples the target's counts at intervals, and unhooks
 * functions that cost too much.  For that it stops the target briefly by ptrace.  A thread that
 * waits for the child must ignore these stops, and must not reap the child before this thread has
 * ended. */
#include "base/status.h"
#include "launch/launch.h"

static void enforce_budget(void *user)
{
    hfn_budget_thread *b = user;
    uint64_t wait_ns = 0;

    while (hfn_watcher_sleep(&b->watcher, wait_ns)) {
        wait_ns = hfn_budget_step(b->budget, b->pid);
    }
}

void hfn_budget_thread_start(hotfn_launch *l)
{
    hfn_budget_thread *b = &l->budget;
    hotfn_error err = HOTFN_ERROR_INIT;

    if (!l->options.budget_ppm) {
        return;
    }
    b->pid = l->child.pid;
    if (hfn_budget_create(&b->budget, l->live, l->channel, &l->env, &err) != HOTFN_OK) {
        hfn_log_message(&l->env, HOTFN_LOG_ERROR, "the budget is not enforced: %s", err.text);
    } else if (!hfn_watcher_start(&b->watcher, enforce_budget, b)) {
        hfn_log_message(&l->env, HOTFN_LOG_ERROR,
                        "the budget is not enforced: no thread can be started");
    }
}

void hfn_budget_thread_stop(hotfn_launch *l)
{
    hfn_watcher_stop(&l->budget.watcher);
    hfn_budget_destroy(l->budget.budget);
    l->budget.budget = NULL;
}
