/* SPDX-License-Identifier: MIT */
/* Detaching from the process that this launch has attached to. */
#include "launch/attach/attachment.h"
#include "launch/attach/forked.h"
#include "launch/attach/removal.h"

#include "base/status.h"

_Static_assert((int)HFN_REMOVAL_BUFFER_BYTES <= (int)HFN_ATTACH_BUFFER_BYTES,
               "a removal uses the buffer of the attachment");

static hfn_removal remove_attachment(hfn_attachment *a)
{
    hfn_removal removal = { .remote = &a->remote, .journal = &a->journal, .buffer = a->buffer };

    hfn_os_remote_close(&a->remote);
    if (a->journal.header && a->journal.at != 0) {
        hfn_removal_run(&removal);
    } else {
        removal.is_gone = true;
    }
    return removal;
}

bool hfn_attachment_remove(hfn_attachment *a)
{
    hfn_removal removal = remove_attachment(a);

    if (removal.is_empty || removal.is_left || removal.is_filtered || removal.is_gone) {
        a->journal.at = 0;
    }
    return a->journal.at == 0;
}

bool hfn_attachment_was_removed(const hfn_attachment *a)
{
    return a->journal.header &&
           __atomic_load_n(&a->journal.header->state, __ATOMIC_ACQUIRE) >= HFN_JOURNAL_RESTORED;
}

void hfn_attachment_release_forked(hfn_attachment *a)
{
    hfn_forked forked;

    hfn_forked_begin(&forked, &a->env, a->remote.pid, &a->journal);
    hfn_forked_release(&forked, a->buffer);
    hfn_forked_finish(&forked);
}

hotfn_status hfn_attachment_leave(hfn_attachment *a, hotfn_error *err)
{
    hfn_removal removal;
    hfn_forked forked;

    if (!a->is_inside) {
        return HOTFN_OK;
    }
    hfn_forked_begin(&forked, &a->env, a->remote.pid, &a->journal);
    removal = remove_attachment(a);
    hfn_forked_release(&forked, a->buffer);
    hfn_forked_finish(&forked);
    a->leave_ns += removal.stopped_ns;
    if (!removal.is_restored && !removal.is_gone && !hfn_attachment_was_removed(a)) {
        return hfn_report_error(err, HOTFN_E_STATE, NULL, HOTFN_NO_OFFSET,
                                "process %u could not be stopped and is still hooked: detach again",
                                a->remote.pid);
    }
    a->is_inside = false;
    if (removal.foreign > 0) {
        hfn_log_message(&a->env, HOTFN_LOG_WARNING,
                        "%u bytes of code were changed by other code and were not restored",
                        removal.foreign);
    } else if (removal.is_restored) {
        hfn_live_set_verified(a->launch->live);
    }
    if (removal.is_left || removal.is_filtered) {
        hfn_removal_report_left(&removal, &a->env);
    } else if (removal.is_restored && !removal.is_empty) {
        hfn_log_message(&a->env, HOTFN_LOG_INFO,
                        "a thread of process %u still executes a stub: its pages stay mapped",
                        a->remote.pid);
    }
    return HOTFN_OK;
}
