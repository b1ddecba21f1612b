/* SPDX-License-Identifier: MIT */
/* Orders of processes: who counts one, and the steps that its agent does. */
#include "launch/attach/inside.h"

#include "base/status.h"
#include "os/os.h"

#include <stdio.h>

hotfn_status hfn_inside_open(hfn_os_agent *a, uint32_t pid, hotfn_error *err)
{
    hfn_os_error error;

    if (pid == hfn_os_get_process_id()) {
        return hfn_report_error(err, HOTFN_E_DENIED, NULL, HOTFN_NO_OFFSET,
                                "process %u is hotfn itself", pid);
    }
    error = hfn_os_agent_open(a, pid);
    if (error == 0) {
        return HOTFN_OK;
    }
    if (hfn_os_is_gone(error)) {
        return hfn_report_error(err, HOTFN_E_NOT_FOUND, NULL, HOTFN_NO_OFFSET,
                                "there is no process %u here, or it has ended", pid);
    }
    return hfn_report_error(err, HOTFN_E_DENIED, NULL, HOTFN_NO_OFFSET,
                            "the system does not let you open process %u (%s): run hotfn as the "
                            "user of that process or as administrator; a protected process cannot "
                            "be attached to",
                            pid, hfn_os_get_error_text(error));
}

static hotfn_status refuse_order(const hfn_os_agent *a, hotfn_error *err)
{
    if (a->order->magic != HFN_ORDER_MAGIC) {
        return hfn_report_error(err, HOTFN_E_MISMATCH, NULL, HOTFN_NO_OFFSET,
                                "process %u has the agent of another version of hotfn: use that "
                                "version, or restart the process",
                                a->pid);
    }
    return hfn_report_error(err, HOTFN_E_STATE, NULL, HOTFN_NO_OFFSET,
                            "process %u was started by hotfn run: its calls are counted there",
                            a->pid);
}

hotfn_status hfn_inside_map(hfn_os_agent *a, bool creates, hotfn_error *err)
{
    hfn_os_error error = hfn_os_agent_map_order(a, creates);

    if (hfn_os_is_missing(error)) {
        return hfn_report_error(err, HOTFN_E_NOT_FOUND, NULL, HOTFN_NO_OFFSET,
                                "no hotfn is attached to process %u", a->pid);
    }
    if (error != 0) {
        return hfn_report_error(err, HOTFN_E_STATE, NULL, HOTFN_NO_OFFSET,
                                "the order for the agent in process %u cannot be opened: %s",
                                a->pid, hfn_os_get_error_text(error));
    }
    return a->order->magic == HFN_ORDER_MAGIC && a->order->kind == HFN_ORDER_ATTACH
               ? HOTFN_OK
               : refuse_order(a, err);
}

/* ---- States. */

static uint64_t load_word(const hfn_agent_order *order)
{
    return __atomic_load_n((const uint64_t *)&order->word, __ATOMIC_ACQUIRE);
}

uint32_t hfn_inside_get_state(const hfn_agent_order *order)
{
    return (uint32_t)load_word(order);
}

uint32_t hfn_inside_get_launcher(const hfn_agent_order *order)
{
    return (uint32_t)(load_word(order) >> 32);
}

bool hfn_inside_claim(hfn_agent_order *order, uint32_t from, uint32_t to)
{
    uint64_t word = load_word(order);
    uint32_t owner = to == HFN_AGENT_ENTERING ? hfn_os_get_process_id() : (uint32_t)(word >> 32);

    return (uint32_t)word == from &&
           __atomic_compare_exchange_n((uint64_t *)&order->word, &word, hfn_agent_word(to, owner),
                                       false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

/* ---- Steps. */

/* The agent never began the step: go back to the state before it. */
static void withdraw_step(hfn_agent_order *order)
{
    uint64_t word = load_word(order);
    uint32_t before = (uint32_t)word == HFN_AGENT_ENTERING ? HFN_AGENT_IDLE : HFN_AGENT_INSIDE;

    __atomic_store_n((uint32_t *)&order->offered, 0, __ATOMIC_RELEASE);
    __atomic_store_n((uint64_t *)&order->word, hfn_agent_word(before, (uint32_t)(word >> 32)),
                     __ATOMIC_RELEASE);
}

static hotfn_status report_call(const hfn_os_agent *a, hfn_os_error error, bool by_hook,
                                hotfn_error *err)
{
    const char *text = hfn_os_get_error_text(error);

    if (hfn_os_is_gone(error) || hfn_os_agent_has_ended(a)) {
        return hfn_report_error(err, HOTFN_E_NOT_FOUND, NULL, HOTFN_NO_OFFSET,
                                "process %u has ended", a->pid);
    }
    if (by_hook && hfn_os_is_missing(error)) {
        return hfn_report_error(err, HOTFN_E_UNSUPPORTED, NULL, HOTFN_NO_OFFSET,
                                "no thread of process %u has a window: enter it by a thread (--by "
                                "thread)",
                                a->pid);
    }
    if (hfn_os_is_timeout(error)) {
        return hfn_report_error(err, HOTFN_E_STATE, NULL, HOTFN_NO_OFFSET,
                                "%s of process %u did not run hotfn's agent in time: is the "
                                "process suspended, or stopped by a debugger?",
                                by_hook ? "the window's thread" : "a new thread", a->pid);
    }
    return hfn_report_error(err, hfn_os_is_denied(error) ? HOTFN_E_DENIED : HOTFN_E_STATE, NULL,
                            HOTFN_NO_OFFSET, "process %u does not run hotfn's agent: %s (%d)%s",
                            a->pid, text, (int)error,
                            by_hook ? "" : "; if hotfn run started it and has ended, restart it");
}

hotfn_status hfn_inside_run(hfn_os_agent *a, const char *agent_path, bool by_hook, hotfn_error *err)
{
    hfn_agent_order *order = a->order;
    hfn_os_error error;

    order->status = HOTFN_OK;
    order->error[0] = 0;
    /* pairs with the exchange in the agent, which then reads the order */
    __atomic_store_n((uint32_t *)&order->offered, 1, __ATOMIC_RELEASE);
    error = hfn_os_agent_call(a, agent_path, by_hook);
    if (error != 0) {
        withdraw_step(order);
        return report_call(a, error, by_hook, err);
    }
    order->error[sizeof order->error - 1] = 0; /* the process may have written anything */
    return order->status == HOTFN_OK ? HOTFN_OK
                                     : hfn_report_error(err, (hotfn_status)order->status, NULL,
                                                        HOTFN_NO_OFFSET, "%s", order->error);
}
