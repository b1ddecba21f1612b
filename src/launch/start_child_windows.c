/* SPDX-License-Identifier: MIT */
/* Start the child with the agent first in its import list, and pass the agent its `order`: the
 * flags, and the paths of the live record, of the plan channel and of the pool of methods, each
 * followed by a NUL. */
#include "base/status.h"
#include "launch/launch.h"
#include "live/run_flags.h"

#include <stdio.h>
#include <string.h>

enum { MAX_ORDER = 1000, MAX_SHARED_PATH = 200 };

static uint32_t make_order(char order[MAX_ORDER], const hotfn_launch *l)
{
    char live[MAX_SHARED_PATH], channel[MAX_SHARED_PATH];
    const hfn_runtime_kind *runtime = hfn_runtime_find(l->options.runtime);
    unsigned flags = (l->options.flags & HOTFN_LAUNCH_QUIET_AGENT ? AGENT_QUIET : 0) |
                     (runtime ? runtime->agent_flag : 0);
    int length;

    hfn_os_shared_path(hfn_live_get_fd(l->live), live, sizeof live);
    hfn_os_shared_path(hfn_plan_channel_get_fd(l->channel), channel, sizeof channel);
    length =
        snprintf(order, MAX_ORDER, "%03u%c%s%c%s%c%s", flags, 0, live, 0, channel, 0, l->methods);
    return length < MAX_ORDER ? (uint32_t)length + 1 : 0;
}

/* No program is: the agent enters all that can be counted. */
hotfn_status hfn_launch_check_outside(const hotfn_launch *l, hotfn_error *err)
{
    (void)l, (void)err;
    return HOTFN_OK;
}

hotfn_status hfn_launch_start_child(hotfn_launch *l, hotfn_error *err)
{
    char order[MAX_ORDER];
    const hfn_os_child_options o = {
        .file = l->target.file,
        .command = l->options.command,
        .passes_signals = (l->options.flags & HOTFN_LAUNCH_PASS_SIGNALS) != 0,
        .agent = l->agent,
        .order = order,
        .order_bytes = make_order(order, l),
    };
    hfn_os_error error;

    if (o.order_bytes == 0) {
        return hfn_report_error(err, HOTFN_E_LIMIT, l->methods, HOTFN_NO_OFFSET,
                                "this path is too long; install libhotfn in a folder with a "
                                "shorter one");
    }
    error = hfn_os_child_start(&l->child, &o, &l->env);
    if (error != 0) {
        return hfn_report_error(err, hfn_os_is_missing(error) ? HOTFN_E_NOT_FOUND : HOTFN_E_DENIED,
                                l->target.file, HOTFN_NO_OFFSET, "%s",
                                hfn_os_get_error_text(error));
    }
    hfn_live_set_pid(l->live, l->child.pid);
    return HOTFN_OK;
}
