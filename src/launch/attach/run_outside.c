/* SPDX-License-Identifier: MIT */
/* hotfn run of a program that no agent can enter: it is started, stands at its entry point, is
 * attached to there, and runs on. */
#include "launch/attach/run_outside.h"

#include "base/status.h"
#include "launch/attach/attachment.h"
#include "os/os.h"

enum { STOP_NS = 1000000000, TRIES = 8 };

hotfn_status hfn_outside_check_options(const hotfn_launch *l, hotfn_error *err)
{
    const hotfn_launch_options *o = &l->options;
    const uint32_t events = HOTFN_LAUNCH_EVENTS | HOTFN_LAUNCH_ALLOC;
    const char *refused = l->timing != 0 || o->flags & events || o->send_to
                              ? "its calls can only be counted, not timed"
                          : o->kit_path   ? "it cannot be counted from a kit"
                          : o->budget_ppm ? "no budget is kept"
                          : o->runtime    ? "a runtime's functions need the agent"
                          : o->flags & HOTFN_LAUNCH_FOLLOW
                              ? "programs that it starts cannot be followed"
                              : NULL;

    return refused
               ? hfn_report_error(err, HOTFN_E_OPTION, l->target.image, HOTFN_NO_OFFSET,
                                  "is linked statically, uses musl or is written in Go, so it is "
                                  "counted from outside: %s",
                                  refused)
               : HOTFN_OK;
}

/* Let the child go on from its entry point. */
static bool unpark_child(hfn_remote *remote, const hfn_os_child *child)
{
    bool ok = false;

    if (hfn_os_remote_open(remote) != 0) {
        return false;
    }
    for (int i = 0; i < TRIES && !ok; i++) {
        ok = hfn_os_remote_stop(remote, STOP_NS) == 0 &&
             hfn_os_remote_write(remote, child->entry, child->entry_code, sizeof child->entry_code);
        while (!hfn_os_remote_resume(remote)) {
            hfn_os_remote_wait_end(remote->pid, 1000000);
        }
    }
    hfn_os_remote_close(remote);
    return ok;
}

hotfn_status hfn_outside_enter(hotfn_launch *l, hotfn_error *err)
{
    hotfn_status status = HOTFN_E_NO_MEMORY;

    l->attachment = hfn_attachment_create(&l->env, l, l->child.pid);
    if (l->attachment) {
        l->attachment->remote.is_child = true;
        hfn_switch_start(l); /* before the program runs */
        hfn_switch_pause(l);
        status = hfn_attachment_enter(l->attachment, err);
        hfn_switch_resume(l);
    } else {
        hfn_report_no_memory(err, NULL);
    }
    if (status == HOTFN_OK && !unpark_child(&l->attachment->remote, &l->child)) {
        status = hfn_report_error(err, HOTFN_E_STATE, l->target.image, HOTFN_NO_OFFSET,
                                  "could not be stopped at its entry point: try again");
    }
    if (status != HOTFN_OK) {
        hfn_os_child_kill(&l->child);
    }
    return status;
}
