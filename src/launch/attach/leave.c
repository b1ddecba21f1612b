/* SPDX-License-Identifier: MIT */
/* Detaching: restore the code, clear the threads' words, and unmap everything once no thread stands
 * in a stub or in the core.  A thread leaves them within a few instructions, unless it waits for a
 * page or for its child in fork(); then the pages stay, unused. */
#include "launch/attach/attachment.h"

#include "base/status.h"
#include "counters/core/core.h"

#include <string.h>

enum { STOP_NS = 1000000000, TRIES = 50, PAUSE_NS = 2000000, REMOTE_TRIES = 4 };

static uint64_t page_up(uint64_t bytes)
{
    return (bytes + 4095) & ~(uint64_t)4095;
}

/* ---- Unmapping.  The threads stand and make calls. */

static void unmap_pages(hfn_attachment *a, uint64_t *address, uint64_t bytes)
{
    for (int i = 0; i < REMOTE_TRIES && *address != 0; i++) {
        if (hfn_os_remote_unmap(&a->remote, *address, page_up(bytes)) == 0) {
            *address = 0;
        }
    }
}

typedef struct use_search {
    const hfn_attachment *attachment;
    bool in_use;
} use_search;

static uint64_t look_for_use(void *user, uint64_t pc)
{
    use_search *s = user;
    const hfn_attachment *a = s->attachment;

    for (size_t i = 0; i < a->stub_count; i++) {
        s->in_use = s->in_use || (pc >= a->stubs[i].begin && pc < a->stubs[i].end);
    }
    s->in_use = s->in_use || (a->core != 0 && pc >= a->core && pc < a->core + hfn_core.byte_count);
    return pc;
}

/* Stubs call only the core, and the core calls nothing: so a thread that uses them stands in them,
 * or a signal handler has interrupted it there. */
static bool is_in_use(hfn_attachment *a)
{
    use_search s = { a, false };

    return !hfn_os_remote_adjust(&a->remote, look_for_use, &s) || s.in_use;
}

bool hfn_attachment_unmap(hfn_attachment *a)
{
    if (is_in_use(a)) {
        a->is_residue = a->stub_count > 0;
        return false;
    }
    while (a->stub_count > 0) {
        hfn_stub_pages *last = &a->stubs[a->stub_count - 1];
        unmap_pages(a, &last->begin, last->end - last->begin);
        if (last->begin != 0) {
            break;
        }
        a->stub_count--;
    }
    unmap_pages(a, &a->core, hfn_core.byte_count);
    unmap_pages(a, &a->spare_row, a->spare_bytes);
    unmap_pages(a, &a->record, a->record_bytes);
    a->is_residue = a->stub_count > 0 || a->core || a->spare_row || a->record;
    return !a->is_residue;
}

/* ---- Restoring. */

static void release_target(hfn_attachment *a)
{
    hfn_os_remote_end_calls(&a->remote);
    a->leave_ns += hfn_os_remote_get_stopped_ns(&a->remote);
    while (!hfn_os_remote_resume(&a->remote)) {
        hfn_os_remote_wait_end(a->remote.pid, 1000000);
    }
}

/* The program that was attached to may have been replaced by exec, or have ended. */
static bool is_still_there(const hfn_attachment *a)
{
    return hfn_os_process_maps_file(a->remote.pid, hfn_live_get_fd(a->launch->live));
}

/* Restore the code in a stop; `*foreign` receives the number of bytes that others had changed. */
static bool restore_code(hfn_attachment *a, uint32_t *foreign)
{
    if (hotfn_hooks_remove(a->hooks, NULL) != HOTFN_OK) {
        return false;
    }
    hfn_fork_sites_restore(a);
    return hfn_mirror_restore_code(a, foreign) && hfn_thread_words_clear(a);
}

static bool try_to_leave(hfn_attachment *a, uint32_t *foreign, bool *is_restored)
{
    bool is_empty = false;

    if (hfn_os_remote_open(&a->remote) != 0) {
        return false;
    }
    if (hfn_os_remote_stop(&a->remote, STOP_NS) == 0) {
        *is_restored = restore_code(a, foreign) || *is_restored;
        if (*is_restored && hfn_os_remote_begin_calls(&a->remote) == 0) {
            is_empty = hfn_attachment_unmap(a);
        }
    }
    release_target(a);
    hfn_os_remote_close(&a->remote);
    return is_empty;
}

static hotfn_status report_result(const hfn_attachment *a, bool is_restored, uint32_t foreign,
                                  hotfn_error *err)
{
    if (!is_restored) {
        return hfn_report_error(err, HOTFN_E_STATE, NULL, HOTFN_NO_OFFSET,
                                "process %u could not be stopped and is still hooked: detach again",
                                a->remote.pid);
    }
    if (foreign > 0) {
        hfn_log_message(&a->env, HOTFN_LOG_WARNING,
                        "%u bytes of code were changed by others and were left alone", foreign);
    }
    if (a->is_residue) {
        hfn_log_message(&a->env, HOTFN_LOG_INFO,
                        "a thread of process %u still stands in a stub: unused pages stay mapped",
                        a->remote.pid);
    }
    return HOTFN_OK;
}

hotfn_status hfn_attachment_leave(hfn_attachment *a, hotfn_error *err)
{
    uint32_t foreign = 0;
    bool is_restored = false, is_empty = false;

    if (!a->is_inside) {
        return HOTFN_OK;
    }
    for (int i = 0; i < TRIES && !is_empty && is_still_there(a); i++) {
        is_empty = try_to_leave(a, &foreign, &is_restored);
        if (!is_empty) {
            hfn_os_remote_wait_end(a->remote.pid, PAUSE_NS);
        }
    }
    a->is_inside = !is_restored && is_still_there(a);
    if (is_restored && foreign == 0) {
        hfn_live_set_verified(a->launch->live);
    }
    return report_result(a, is_restored || !a->is_inside, foreign, err);
}
