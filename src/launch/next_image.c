/* SPDX-License-Identifier: MIT */
/* The target has called exec, so the new program becomes the target: it gets a new live record and
 * plan channel, and all earlier counts are dropped.  Processes that the earlier program has forked
 * still count into the old record, which is not read. */
#include "base/status.h"
#include "launch/launch.h"
#include "live/live.h"
#include "os/os.h"

#include <stdio.h>
#include <string.h>

typedef struct run {
    hfn_live *live;
    hfn_plan_channel *channel;
} run;

static void stop_helpers(hotfn_launch *l)
{
    hfn_send_thread_stop(l, true);
    hfn_switch_stop(l);
    hfn_budget_thread_stop(l);
    hfn_thread_watch_stop(l);
    hfn_patch_watch_stop(l, false);
    hfn_watcher_stop(&l->observation.watcher);
    hfn_snapshot_destroy(l->observation.from);
    hfn_snapshot_destroy(l->observation.to);
    l->observation = (hfn_observation){ 0 };
    hfn_ticker_stop(&l->ticker);
}

static void start_helpers(hotfn_launch *l)
{
    if (hfn_launch_start_ticker(l, NULL) != HOTFN_OK) { /* continue without a tick clock */
        hfn_live_use_counter(l->live);
    }
    hfn_observation_start(l);
    hfn_send_thread_start(l);
    hfn_budget_thread_start(l);
    hfn_thread_watch_start(l);
    hfn_patch_watch_start(l);
    hfn_switch_start(l);
}

/* A durable record is closed first, because the new one has the same path. */
static hotfn_status begin_record(hotfn_launch *l, run *before, hotfn_error *err)
{
    if (l->options.flags & HOTFN_LAUNCH_DURABLE) {
        hfn_live_close(before->live);
        before->live = NULL;
    }
    l->live = NULL;
    l->channel = NULL;
    hotfn_status status = hfn_launch_create_record(l, err);
    if (status != HOTFN_OK) {
        hfn_live_close(l->live);
        hfn_plan_channel_destroy(l->channel);
        l->live = before->live;
        l->channel = before->channel;
    }
    return status;
}

static void forget_modules(hotfn_launch *l)
{
    hfn_known_modules_finish(&l->known);
    hfn_known_modules_init(&l->known, &l->env);
    memset(l->matched_includes, 0, l->selection.include_count + 1u);
    memset(l->matched_module_globs, 0, l->options.module_count + 1u);
}

static hotfn_status replace_record(hotfn_launch *l, const hfn_plan_request *request, run *before,
                                   hotfn_error *err)
{
    hfn_target_set_image(&l->target, request->path, &l->env);
    stop_helpers(l);
    hotfn_status status = begin_record(l, before, err);
    if (status == HOTFN_OK) {
        forget_modules(l);
        l->begin_ns = hfn_os_monotonic_ns();
        atomic_store(&l->waited_ns, 0);
        hfn_live_set_pid(l->live, l->child.pid);
        hfn_children_free(&l->children);
        hfn_children_begin(&l->children, l->child.pid, false, &l->env);
    }
    if (l->live) {
        start_helpers(l);
    }
    return status;
}

void hfn_launch_follow_exec(hotfn_launch *l, const hfn_plan_request *request)
{
    hotfn_error err = HOTFN_ERROR_INIT;
    run before;
    bool is_replaced = false;

    hfn_os_lock_mutex(&l->lock);
    before = (run){ l->live, l->channel };
    if (!l->has_ended && hfn_plan_channel_get_requester(l->channel) == l->child.pid) {
        hotfn_status status = replace_record(l, request, &before, &err);
        is_replaced = status == HOTFN_OK;
        if (!is_replaced) {
            hfn_log_message(&l->env, HOTFN_LOG_ERROR, "%s is not counted: %s", request->path,
                            err.text);
        }
    }
    hfn_os_unlock_mutex(&l->lock);
    if (!is_replaced) {
        hfn_plan_channel_answer(before.channel, UINT32_MAX);
        return;
    }
    hfn_plan_channel_answer_image(before.channel,
                                  (hfn_run_files){ (uint32_t)hfn_live_get_fd(l->live),
                                                   (uint32_t)hfn_plan_channel_get_fd(l->channel) });
    hfn_plan_channel_close(before.channel);
    hfn_plan_channel_destroy(before.channel);
    hfn_live_close(before.live);
}
