/* SPDX-License-Identifier: MIT */
/* Sends the target's events while it runs, from a thread of the launcher. */
#include "base/status.h"
#include "launch/launch.h"

hotfn_status hfn_send_thread_open(hotfn_launch *l, hotfn_error *err)
{
    hotfn_error why = HOTFN_ERROR_INIT;

    if (!l->options.send_to) {
        return HOTFN_OK;
    }
    hotfn_status status =
        hfn_event_sender_create(&l->events.sender, l->options.send_to, &l->env, &why);
    if (status == HOTFN_OK) {
        return HOTFN_OK;
    }
    /* a launch returns HOTFN_E_NOT_FOUND only for the program itself */
    status = status == HOTFN_E_NOT_FOUND ? HOTFN_E_IO : status;
    return hfn_report_error(err, status, why.file[0] ? why.file : NULL, why.offset, "%s", why.text);
}

static void send_events(void *user)
{
    hfn_send_thread *t = user;

    while (hfn_watcher_sleep(&t->watcher, HFN_SEND_POLL_NS)) {
        hfn_event_sender_poll(t->sender);
    }
}

void hfn_send_thread_start(hotfn_launch *l)
{
    hfn_send_thread *t = &l->events;

    if (t->sender &&
        (!hfn_event_sender_begin(t->sender, l->live, l->child.pid, l->command ? l->command : "") ||
         !hfn_watcher_start(&t->watcher, send_events, t))) {
        hfn_log_message(&l->env, HOTFN_LOG_ERROR,
                        "no thread can be started: events are sent at the end only");
    }
}

void hfn_send_thread_stop(hotfn_launch *l, bool is_replaced)
{
    if (l->events.sender) {
        hfn_watcher_stop(&l->events.watcher);
        hfn_event_sender_end(l->events.sender, is_replaced);
    }
}
