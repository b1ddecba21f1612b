/* SPDX-License-Identifier: MIT */
/* Releasing a process from the agent of another launcher, and what an attach needs of a process
 * before it begins.  If that launcher was killed, the agent alone still holds the record. */
#include "launch/attach/inside.h"
#include "launch/attach/release.h"
#include "launch/launch.h"

#include "base/status.h"
#include "os/descendants.h"
#include "os/os.h"

#include <stdio.h>
#include <string.h>

enum { PAUSE_NS = 1000000, MAX_PAUSES = 5000 };

/* ---- A process that a launcher has entered. */

static bool is_launcher_gone(const hfn_agent_order *order)
{
    return hfn_os_process_is_gone(hfn_inside_get_launcher(order));
}

/* A step that another launcher has begun is done soon.  Returns the state, INSIDE or IDLE. */
static uint32_t wait_for_rest(const hfn_os_agent *a)
{
    uint32_t state = hfn_inside_get_state(a->order);

    for (int i = 0; i < MAX_PAUSES && state != HFN_AGENT_IDLE && state != HFN_AGENT_INSIDE; i++) {
        if (hfn_os_remote_wait_end(a->pid, PAUSE_NS)) {
            return HFN_AGENT_IDLE;
        }
        state = hfn_inside_get_state(a->order);
    }
    return state;
}

static hotfn_status save_counts(const char *live, const char *record_path, const hotfn_env *env,
                                hotfn_error *err)
{
    hotfn_status status = hotfn_record_repair(live, record_path, NULL, 0, env, err);

    if (status == HOTFN_OK) {
        hfn_log_message(env, HOTFN_LOG_INFO, "the counts of a hotfn that was killed are in %s",
                        record_path);
    }
    return status;
}

static hotfn_status run_release(hfn_os_agent *a, hotfn_error *err)
{
    char agent[HFN_OS_PATH_BYTES] = "";

    if (!hfn_inside_claim(a->order, HFN_AGENT_INSIDE, HFN_AGENT_LEAVING)) {
        return hfn_report_error(err, HOTFN_E_STATE, NULL, HOTFN_NO_OFFSET,
                                "another hotfn attaches to process %u or detaches from it: try "
                                "again",
                                a->pid);
    }
    hotfn_launch_find_agent(agent, sizeof agent, HOTFN_MACHINE_OTHER, NULL);
    return hfn_inside_run(a, agent, a->order->by_hook != 0, err);
}

/* Let the agent leave.  The counts of a launcher that was killed are saved, if a path is given: the
 * open file keeps its record, which the agent closes. */
static hotfn_status release_agent(hfn_os_agent *a, const char *record_path, const hotfn_env *env,
                                  hotfn_error *err)
{
    const char *live = a->order->text + strlen(a->order->text) + 1;
    bool saves = record_path && is_launcher_gone(a->order);
    hfn_os_file record = HFN_OS_NO_FILE;
    char path[sizeof a->order->text];
    hotfn_status status;

    snprintf(path, sizeof path, "%s", live);
    if (saves && hfn_os_open_file(&record, path, HFN_OS_READ) != 0) {
        record = HFN_OS_NO_FILE;
    }
    status = run_release(a, err);
    if (status == HOTFN_OK && a->order->error[0]) {
        hfn_log_message(env, HOTFN_LOG_WARNING, "%s", a->order->error);
    }
    if (status == HOTFN_OK && saves) {
        status = save_counts(path, record_path, env, err);
    }
    if (hfn_os_is_open(record)) {
        hfn_os_close_file(record);
    }
    return status;
}

hotfn_status hotfn_launch_release(uint32_t pid, const char *record_path, uint64_t *stop_ns,
                                  const hotfn_env *env, hotfn_error *err)
{
    hotfn_env filled = hfn_env_fill(env);
    hfn_os_agent agent;
    hotfn_status status = hfn_inside_open(&agent, pid, err);

    if (status != HOTFN_OK) {
        return status;
    }
    status = hfn_inside_map(&agent, false, err);
    if (status == HOTFN_OK && wait_for_rest(&agent) == HFN_AGENT_IDLE) {
        status = hfn_report_error(err, HOTFN_E_NOT_FOUND, NULL, HOTFN_NO_OFFSET,
                                  "no hotfn is attached to process %u", pid);
    }
    if (status == HOTFN_OK) {
        status = release_agent(&agent, record_path, &filled, err);
        if (status == HOTFN_OK) {
            hfn_log_message(&filled, HOTFN_LOG_INFO,
                            "hotfn's agent and stubs stay loaded in process %u, unused", pid);
        }
        if (stop_ns) {
            *stop_ns = agent.order->stop_ns;
        }
    }
    hfn_os_agent_close(&agent);
    return status;
}

/* ---- Before an attach. */

static hotfn_status refuse_second(const hfn_os_agent *a, hotfn_error *err)
{
    return hfn_report_error(err, HOTFN_E_STATE, NULL, HOTFN_NO_OFFSET,
                            "another hotfn (process %u) counts process %u: end it first (hotfn "
                            "detach %u)",
                            hfn_inside_get_launcher(a->order), a->pid, a->pid);
}

static hotfn_status release_killed(hfn_os_agent *a, const char *record_path, const hotfn_env *env,
                                   hotfn_error *err)
{
    char path[HFN_OS_PATH_BYTES];
    bool saves =
        record_path && snprintf(path, sizeof path, "%s.killed", record_path) < (int)sizeof path;
    hotfn_status status = release_agent(a, saves ? path : NULL, env, err);

    if (hfn_inside_get_state(a->order) != HFN_AGENT_IDLE) {
        return status;
    }
    hfn_log_message(env, HOTFN_LOG_WARNING,
                    "a hotfn that was killed had left hooks in process %u: they are removed%s%s",
                    a->pid,
                    !saves               ? ""
                    : status == HOTFN_OK ? ", and its counts are in "
                                         : "; its counts could not be saved to ",
                    saves ? path : "");
    return HOTFN_OK;
}

/* Does another hotfn count the process?  *is_left: a hotfn that was killed has left its hooks. */
static hotfn_status find_other(hfn_os_agent *a, bool *is_left, hotfn_error *err)
{
    hotfn_error why = HOTFN_ERROR_INIT;
    hotfn_status status = hfn_inside_map(a, false, &why);

    *is_left = false;
    if (status == HOTFN_E_NOT_FOUND) {
        return HOTFN_OK;
    }
    if (status != HOTFN_OK) {
        return hfn_report_error(err, status, NULL, HOTFN_NO_OFFSET, "%s", why.text);
    }
    if (hfn_inside_get_state(a->order) == HFN_AGENT_IDLE) {
        return HOTFN_OK;
    }
    if (!is_launcher_gone(a->order)) {
        return refuse_second(a, err);
    }
    *is_left = wait_for_rest(a) == HFN_AGENT_INSIDE;
    return HOTFN_OK;
}

hotfn_status hfn_release_before_attach(uint32_t pid, const char *record_path, const hotfn_env *env,
                                       hotfn_error *err)
{
    hfn_os_agent agent;
    hotfn_status status = hfn_inside_open(&agent, pid, err);
    bool is_left = false;

    if (status != HOTFN_OK) {
        return status;
    }
    status = find_other(&agent, &is_left, err);
    if (status == HOTFN_OK && is_left) {
        status = release_killed(&agent, record_path, env, err);
    }
    hfn_os_agent_close(&agent);
    return status;
}

/* ---- The same conditions without an attach. */

static void report_condition(hotfn_attach_check_fn report, void *user, const char *name,
                             hotfn_status status, const char *text)
{
    if (report) {
        report(user, name, status, text);
    }
}

static hotfn_status check_other(hfn_os_agent *a, hotfn_attach_check_fn report, void *user,
                                hotfn_error *err)
{
    bool is_left = false;
    hotfn_status status = find_other(a, &is_left, err);

    report_condition(report, user, "hotfn", status,
                     status != HOTFN_OK ? err->text
                     : is_left ? "a hotfn that was killed has left hooks in it, which hotfn attach "
                                 "removes first (hotfn detach saves its counts)"
                               : "no other hotfn counts it");
    return status;
}

hotfn_status hotfn_launch_check_attach(uint32_t pid, hotfn_attach_check_fn report, void *user,
                                       const hotfn_env *env, hotfn_error *err)
{
    hotfn_env filled = hfn_env_fill(env);
    hotfn_error why = HOTFN_ERROR_INIT;
    hfn_target target = { .file = "" };
    hfn_os_agent agent;
    hotfn_status status = hfn_inside_open(&agent, pid, &why), machine;

    report_condition(report, user, "permission", status,
                     status == HOTFN_OK ? "the system lets you attach to it" : why.text);
    if (status == HOTFN_OK) {
        status = check_other(&agent, report, user, &why);
        hfn_os_agent_close(&agent);
        if (hfn_os_get_process_program(pid, target.image, sizeof target.image)) {
            machine = hfn_target_check_image(&target, &filled, status == HOTFN_OK ? &why : NULL);
            report_condition(report, user, "machine", machine,
                             machine == HOTFN_OK ? "its code is for the CPU of this hotfn"
                                                 : "its code is for another CPU or word size");
            status = status == HOTFN_OK ? machine : status;
        }
    }
    return status == HOTFN_OK ? HOTFN_OK
                              : hfn_report_error(err, status, why.file, why.offset, "%s", why.text);
}
