/* SPDX-License-Identifier: MIT */
/* Start the child with the agent's settings in its environment.  The agent reads them there and
 * removes them before the program runs. */
#include "base/status.h"
#include "launch/attach/run_outside.h"
#include "launch/launch.h"
#include "live/run_flags.h"
#include "os/process.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SETTINGS = 3 };

typedef struct environment {
    char preload[3 * HFN_OS_PATH_BYTES], run[256], target[HFN_OS_PATH_BYTES];
    const char *settings[MAX_SETTINGS];
    uint32_t count;
} environment;

static unsigned agent_flags(const hotfn_launch *l)
{
    const hfn_runtime_kind *runtime = hfn_runtime_find(l->options.runtime);
    uint32_t flags = l->options.flags;

    return (runtime ? runtime->agent_flag : 0) | (flags & HOTFN_LAUNCH_FOLLOW ? AGENT_FOLLOW : 0) |
           (flags & HOTFN_LAUNCH_PERF_MAP ? AGENT_PERF_MAP : 0) |
           (flags & HOTFN_LAUNCH_QUIET_AGENT ? AGENT_QUIET : 0);
}

/* Returns false if a setting is too long. */
static bool fill_environment(environment *e, const hotfn_launch *l)
{
    const char *before = getenv("LD_PRELOAD"), *glob = l->options.target_glob;
    bool fits = snprintf(e->preload, sizeof e->preload, "LD_PRELOAD=%s%s%s%s%s", l->agent,
                         l->methods[0] ? ":" : "", l->methods, before ? ":" : "",
                         before ? before : "") < (int)sizeof e->preload;

    snprintf(e->run, sizeof e->run, "HOTFN_RUN=%" PRIu32 ":%d:%d:0:%03u", hfn_os_get_process_id(),
             hfn_live_get_fd(l->live), hfn_plan_channel_get_fd(l->channel), agent_flags(l));
    e->settings[0] = e->preload;
    e->settings[1] = e->run;
    e->count = 2;
    if (glob) {
        fits = fits && snprintf(e->target, sizeof e->target, "HOTFN_TARGET=%s", glob) <
                           (int)sizeof e->target;
        e->settings[e->count++] = e->target;
    }
    return fits;
}

static hotfn_status report_start_error(const hotfn_launch *l, hfn_os_error error, hotfn_error *err)
{
    hotfn_status status = hfn_os_is_missing(error) ? HOTFN_E_NOT_FOUND
                          : hfn_os_is_busy(error)  ? HOTFN_E_STATE
                                                   : HOTFN_E_DENIED;

    return hfn_report_error(err, status, l->target.file, HOTFN_NO_OFFSET, "%s",
                            hfn_os_is_busy(error)
                                ? "another launch passes the signals of this process on"
                                : hfn_os_get_error_text(error));
}

hotfn_status hfn_launch_check_outside(const hotfn_launch *l, hotfn_error *err)
{
    return hfn_outside_check_options(l, err);
}

hotfn_status hfn_launch_start_child(hotfn_launch *l, hotfn_error *err)
{
    environment e = { .count = 0 };
    hfn_os_error error = E2BIG;

    if (l->target.is_outside || fill_environment(&e, l)) {
        const hfn_os_child_options o = {
            .file = l->target.file,
            .command = l->options.command,
            .settings = e.settings,
            .setting_count = e.count,
            .passes_signals = (l->options.flags & HOTFN_LAUNCH_PASS_SIGNALS) != 0,
            .is_parked = l->target.is_outside,
        };
        error = hfn_os_child_start(&l->child, &o, &l->env);
    }
    if (error != 0) {
        return report_start_error(l, error, err);
    }
    hfn_live_set_pid(l->live, l->child.pid);
    return l->target.is_outside ? hfn_outside_enter(l, err) : HOTFN_OK;
}
