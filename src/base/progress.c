/* SPDX-License-Identifier: MIT */
/* Without a progress_fn, the first report sets `next` to its maximum: each further unit of the loop
 * costs one comparison. */
#include "base/progress.h"

enum { REPORTS = 100 };

static void call_back(const hfn_progress *p)
{
    p->env->progress_fn(p->env->progress_user, &p->now);
}

hfn_progress hfn_progress_begin(const hotfn_env *env, const char *action, const char *file,
                                uint64_t total)
{
    hfn_progress p = { 0 };

    if (env && env->progress_fn && total > 0) {
        p.env = env;
        p.now = (hotfn_progress){ sizeof p.now, 0, action, file, 0, total };
    }
    return p;
}

void hfn_progress_report(hfn_progress *p, uint64_t done)
{
    p->next = p->env ? done + p->now.total / REPORTS + 1 : UINT64_MAX;
    if (p->env && done < p->now.total) { /* hfn_progress_end reports the end */
        p->now.done = done;
        call_back(p);
    }
}

void hfn_progress_end(hfn_progress *p)
{
    if (p->env) {
        p->now.done = p->now.total;
        call_back(p);
    }
}
