/* SPDX-License-Identifier: MIT */
/* --budget: a thread that looks at the target's counts from time to time and takes out what costs too
 * much.  It holds the target by ptrace for moments; who waits for the target must know that, and must
 * not reap it before this thread has ended. */
#include "cli/commands.h"
#include "run.h"

static void *keep(void *user)
{
    run_budget *b = user;
    uint64_t wait_ns = 0;
    while (run_watcher_sleep(&b->watcher, wait_ns)) {
        wait_ns = hotfn_budget_step(b->budget, b->pid);
    }
    return NULL;
}

bool run_budget_start(run_budget *b, hotfn_live *live, hotfn_handover *handover, uint32_t pid,
                      const hotfn_env *env)
{
    hotfn_error err = HOTFN_ERROR_INIT;
    b->pid = pid;
    if (hotfn_budget_create(&b->budget, live, handover, env, &err) != HOTFN_OK) {
        hotfn_tool_fail("run", &err);
        return false;
    }
    return run_watcher_start(&b->watcher, keep, b);
}

void run_budget_stop(run_budget *b)
{
    run_watcher_stop(&b->watcher);
    hotfn_budget_destroy(b->budget);
}
