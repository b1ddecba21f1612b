/* SPDX-License-Identifier: MIT */
/* An attachment whose agent enters the process, and stays loaded there. The launch serves its
 * plans as it does for a program that it started; the modules that are loaded at the attach are
 * scanned before the agent enters, because it holds the loader's lock while it waits for a plan. */
#include "launch/attach/inside.h"

#include "base/status.h"
#include "launch/attach/attached.h"
#include "os/os.h"

#include <stdio.h>
#include <string.h>

/* What hfn_attachment points to here. */
typedef struct inside {
    hotfn_env env;
    hotfn_launch *launch;
    hfn_os_agent agent;
    uint64_t enter_ns, leave_ns; /* for how long all threads were stopped */
    bool is_inside;
} inside;

static inside *get_inside(hfn_attachment *attachment)
{
    return (inside *)(void *)attachment;
}

static const inside *get_const_inside(const hfn_attachment *attachment)
{
    return (const inside *)(const void *)attachment;
}

const char *hfn_attachment_find_refusal(const hotfn_launch_options *o)
{
    return o->flags & HOTFN_LAUNCH_DURABLE ? "a live record is not kept in a file on Windows"
                                           : NULL;
}

const char *const *hfn_attachment_find_libraries(void)
{
    return NULL;
}

/* A detach restores every byte, but the jumps of tail exits stay as long as calls are open. */
uint32_t hfn_attachment_get_scan_flags(void)
{
    return HOTFN_SCAN_NO_TAIL_EXIT;
}

hfn_attachment *hfn_attachment_create(const hotfn_env *env, hotfn_launch *launch, uint32_t pid)
{
    inside *a = hfn_allocate_zeroed(env, sizeof *a);

    if (a) {
        a->env = *env;
        a->launch = launch;
        a->agent.pid = pid;
    }
    return (hfn_attachment *)(void *)a;
}

bool hfn_attachment_uncounts(const hfn_attachment *attachment)
{
    (void)attachment;
    return false;
}

void hfn_attachment_free(hfn_attachment *attachment)
{
    inside *a = get_inside(attachment);
    hotfn_env env;

    if (a) {
        env = a->env;
        hfn_plan_service_stop(a->launch); /* its thread uses the launch */
        hfn_os_agent_close(&a->agent);
        hfn_free_memory(&env, a, sizeof *a);
    }
}

/* ---- Entering. */

/* The agent, which an earlier attach has left there, is no part of the program. */
static bool is_agent(const inside *a, const hfn_plan_request *request)
{
    uint64_t device, inode;

    return hfn_os_identify_file(a->launch->agent, &device, &inode) &&
           device == request->file_device && inode == request->file_inode;
}

static bool scan_module(void *user, const hfn_remote_module *module)
{
    inside *a = user;
    hfn_plan_request request;

    if (hfn_attachment_describe_module(module, &request) && !is_agent(a, &request)) {
        hfn_plan_service_resolve(a->launch, &request);
    }
    return true;
}

/* The agent's order: flags, path of the live record, path of the plan channel. */
static void write_order(const inside *a)
{
    const hotfn_launch *l = a->launch;
    hfn_agent_order *order = a->agent.order;
    char live[200], channel[200];
    int length;

    hfn_os_shared_path(hfn_live_get_fd(l->live), live, sizeof live);
    hfn_os_shared_path(hfn_plan_channel_get_fd(l->channel), channel, sizeof channel);
    length = snprintf(order->text, sizeof order->text, "%03u%c%s%c%s", 0u, 0, live, 0, channel);
    order->text_bytes = (uint32_t)length + 1;
    order->by_hook = (l->options.flags & HOTFN_LAUNCH_BY_HOOK) != 0;
}

static hotfn_status claim_order(inside *a, hotfn_error *err)
{
    hotfn_status status = hfn_inside_map(&a->agent, true, err);

    if (status == HOTFN_OK &&
        !hfn_inside_claim(a->agent.order, HFN_AGENT_IDLE, HFN_AGENT_ENTERING)) {
        status = hfn_report_error(err, HOTFN_E_STATE, NULL, HOTFN_NO_OFFSET,
                                  "another hotfn (process %u) attaches to process %u",
                                  hfn_inside_get_launcher(a->agent.order), a->agent.pid);
    }
    return status;
}

static hotfn_status run_enter(inside *a, hotfn_error *err)
{
    hotfn_launch *l = a->launch;
    hotfn_error why = HOTFN_ERROR_INIT;
    hotfn_status status;

    write_order(a);
    if (!hfn_plan_service_start(l)) {
        return hfn_report_error(err, HOTFN_E_NO_MEMORY, NULL, HOTFN_NO_OFFSET,
                                "no thread can be started to serve plans");
    }
    status = hfn_inside_run(&a->agent, l->agent, a->agent.order->by_hook != 0, &why);
    if (status != HOTFN_OK) {
        return hfn_report_error(err, status, why.file, HOTFN_NO_OFFSET,
                                "%s; the process is not attached to", why.text);
    }
    a->is_inside = true;
    a->enter_ns = a->agent.order->stop_ns;
    return HOTFN_OK;
}

hotfn_status hfn_attachment_enter(hfn_attachment *attachment, hotfn_error *err)
{
    inside *a = get_inside(attachment);
    hotfn_status status = hfn_agent_choose(a->launch, err);

    if (status == HOTFN_OK) {
        status = hfn_inside_open(&a->agent, a->agent.pid, err);
    }
    if (status == HOTFN_OK) {
        hfn_os_remote_each_module(a->agent.pid, scan_module, a);
        status = claim_order(a, err);
    }
    return status == HOTFN_OK ? run_enter(a, err) : status;
}

/* ---- While it counts. */

static bool was_removed(const inside *a)
{
    const hfn_agent_order *order = a->agent.order;

    return !order || hfn_inside_get_state(order) == HFN_AGENT_IDLE ||
           hfn_inside_get_launcher(order) != hfn_os_get_process_id();
}

bool hfn_attachment_was_removed(const hfn_attachment *attachment)
{
    return was_removed(get_const_inside(attachment));
}

void hfn_attachment_describe(const hfn_attachment *attachment, hotfn_launch_info *info)
{
    const inside *a = get_const_inside(attachment);
    hfn_start_stats stats;

    info->is_joined = 1;
    info->attach_stop_ns = a->enter_ns;
    info->detach_stop_ns = a->leave_ns;
    if (hfn_plan_channel_get_stats(a->launch->channel, &stats) == HOTFN_OK) {
        info->hooked_count = stats.hooked;
        info->refused_count = stats.refused;
        info->hook_ns = stats.total_ns;
    }
}

void hfn_attachment_release_forked(hfn_attachment *attachment)
{
    (void)attachment; /* no process forks */
}

/* ---- Leaving. */

/* The record has this as the note of the program's module. */
static void note_remains(inside *a)
{
    hotfn_record_module main_module = HOTFN_RECORD_MODULE_INIT;
    hfn_live *live = a->launch->live;

    for (uint32_t i = 0; i < hfn_live_get_module_count(live); i++) {
        if (hfn_live_get_module(live, i, &main_module) == HOTFN_OK &&
            (main_module.flags & HOTFN_MODULE_MAIN)) {
            hfn_live_set_module(live, i, main_module.flags, main_module.load_base,
                                "hotfn's agent and stubs stay loaded in the process");
        }
    }
    hfn_log_message(&a->env, HOTFN_LOG_INFO,
                    "process %u has its own code again; hotfn's agent and stubs stay loaded in it, "
                    "unused",
                    a->agent.pid);
}

/* Another hotfn may detach the process at the same time. */
static hotfn_status run_leave(inside *a, hotfn_error *err)
{
    enum { PAUSE_NS = 1000000 };
    hfn_agent_order *order = a->agent.order;

    while (!hfn_inside_claim(order, HFN_AGENT_INSIDE, HFN_AGENT_LEAVING)) {
        if (was_removed(a)) {
            return HOTFN_OK;
        }
        if (hfn_os_remote_wait_end(a->agent.pid, PAUSE_NS)) {
            return HOTFN_E_NOT_FOUND;
        }
    }
    hotfn_status status = hfn_inside_run(&a->agent, a->launch->agent, order->by_hook != 0, err);
    a->leave_ns = order->stop_ns;
    return status;
}

hotfn_status hfn_attachment_leave(hfn_attachment *attachment, hotfn_error *err)
{
    inside *a = get_inside(attachment);
    hotfn_error why = HOTFN_ERROR_INIT;
    hotfn_status status;

    if (!a->is_inside) {
        return HOTFN_OK;
    }
    status = run_leave(a, &why);
    if (status != HOTFN_OK && status != HOTFN_E_NOT_FOUND) {
        return hfn_report_error(err, HOTFN_E_STATE, NULL, HOTFN_NO_OFFSET,
                                "process %u is still hooked: %s; detach again", a->agent.pid,
                                why.text);
    }
    a->is_inside = false;
    if (status == HOTFN_OK) {
        if (a->agent.order->error[0]) {
            hfn_log_message(&a->env, HOTFN_LOG_WARNING, "%s", a->agent.order->error);
        }
        note_remains(a);
    }
    return HOTFN_OK;
}
