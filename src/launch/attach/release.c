/* SPDX-License-Identifier: MIT */
/* Releasing a process that another hotfn has attached to.  If that hotfn still runs, it ends its
 * run; if it was killed, its counts are saved. */
#include "launch/attach/release.h"

#include "base/status.h"
#include "launch/attach/check.h"
#include "launch/attach/forked.h"
#include "launch/attach/removal.h"
#include "launch/attach/rescue.h"
#include "live/live.h"
#include "os/os.h"

#include <stdio.h>

/* ---- One release. */

typedef struct release {
    hotfn_env env;
    hfn_remote remote;
    hfn_journal journal;
    uint8_t *buffer;
    hfn_removal removal;
    hfn_rescue rescue;
} release;

static hotfn_status begin_release(release *r, uint32_t pid, const hotfn_env *env, hotfn_error *err)
{
    hotfn_status status;

    *r = (release){ .env = hfn_env_fill(env) };
    r->remote = (hfn_remote){ .env = r->env, .pid = pid, .memory = HFN_OS_NO_FILE };
    r->journal.file = r->rescue.copy = HFN_OS_NO_FILE;
    if (hfn_os_remote_open(&r->remote) != 0) {
        return hfn_report_error(err, HOTFN_E_STATE, NULL, HOTFN_NO_OFFSET,
                                "the memory of process %u cannot be opened: try again", pid);
    }
    status = hfn_journal_read(&r->journal, &r->remote, err);
    hfn_os_remote_close(&r->remote);
    if (status == HOTFN_OK) {
        r->buffer = hfn_os_map_pages(HFN_REMOVAL_BUFFER_BYTES);
        status = r->buffer ? HOTFN_OK : hfn_report_no_memory(err, NULL);
    }
    return status;
}

static void finish_release(release *r)
{
    hfn_os_remote_finish(&r->remote);
    hfn_journal_close(&r->journal);
    if (r->buffer) {
        hfn_os_unmap((uint64_t)(uintptr_t)r->buffer, HFN_REMOVAL_BUFFER_BYTES);
    }
    if (hfn_os_is_open(r->rescue.copy)) {
        hfn_os_close_file(r->rescue.copy);
    }
}

static hotfn_status save_counts(release *r, const char *record_path, hotfn_error *err)
{
    hotfn_status status = hfn_rescue_finish(&r->rescue, record_path, &r->env, err);

    if (status == HOTFN_OK) {
        hfn_log_message(&r->env, HOTFN_LOG_INFO, "the counts of a hotfn that was killed are in %s",
                        record_path);
    }
    return status;
}

/* Restore the process.  If the launcher was killed and a path is given, its counts are saved. */
static hotfn_status run_release(release *r, const char *record_path, bool forces, hotfn_error *err)
{
    bool saves = record_path && !hfn_journal_is_in_use(&r->journal) &&
                 r->journal.header->state != HFN_JOURNAL_PREPARED &&
                 r->journal.header->state != HFN_JOURNAL_LEFT;
    uint32_t pid = r->remote.pid, own_id, own_namespace;
    hfn_forked forked;
    bool is_own;

    hfn_os_remote_get_identity(pid, &own_id, &own_namespace);
    is_own = own_id == r->journal.header->target_id; /* not a process that was forked from it */
    r->removal = (hfn_removal){
        .remote = &r->remote, .journal = &r->journal, .buffer = r->buffer, .forces = forces
    };
    if (saves) {
        r->rescue.journal = &r->journal;
        r->rescue.buffer = r->buffer;
        r->rescue.buffer_bytes = HFN_REMOVAL_BUFFER_BYTES;
        r->removal.before_unmap = hfn_rescue_copy;
        r->removal.user = &r->rescue;
    }
    hfn_forked_begin(&forked, &r->env, pid, &r->journal);
    hfn_removal_run(&r->removal);
    if (is_own) {
        hfn_forked_release(&forked, r->buffer);
    }
    hfn_forked_finish(&forked);
    if (!r->removal.is_restored) {
        return hfn_report_error(
            err, r->removal.is_gone ? HOTFN_E_NOT_FOUND : HOTFN_E_STATE, NULL, HOTFN_NO_OFFSET,
            r->removal.is_gone ? "process %u has ended, or runs another program now"
                               : "process %u could not be stopped and is still hooked: detach "
                                 "again",
            pid);
    }
    if (r->removal.foreign > 0) {
        hfn_log_message(&r->env, HOTFN_LOG_WARNING,
                        "%u bytes of code were changed by other code and were not restored",
                        r->removal.foreign);
    }
    if (r->removal.is_left || r->removal.is_filtered) {
        hfn_removal_report_left(&r->removal, &r->env);
    }
    return saves ? save_counts(r, record_path, err) : HOTFN_OK;
}

hotfn_status hotfn_launch_release(uint32_t pid, const char *record_path, uint64_t *stop_ns,
                                  const hotfn_env *env, hotfn_error *err)
{
    hfn_attach_check check = { .is_attached = true, .err = err };
    hotfn_status status = hfn_check_process(&check, pid);
    release r;

    if (status != HOTFN_OK) {
        return status;
    }
    status = begin_release(&r, pid, env, err);
    if (status == HOTFN_OK) {
        status = run_release(&r, record_path, false, err);
    }
    if (status == HOTFN_OK && stop_ns) {
        *stop_ns = r.removal.stopped_ns;
    }
    finish_release(&r);
    return status;
}

/* ---- Before an attach. */

static hotfn_status refuse_second(const release *r, hotfn_error *err)
{
    return hfn_report_error(err, HOTFN_E_STATE, NULL, HOTFN_NO_OFFSET,
                            "another hotfn (process %u) counts process %u: end it first (hotfn "
                            "detach %u)",
                            r->journal.header->launcher_pid, r->remote.pid, r->remote.pid);
}

/* Where the counts of a hotfn that was killed are kept; false: nowhere. */
static bool name_rescued(char *out, size_t bytes, const char *record_path)
{
    return record_path && snprintf(out, bytes, "%s.killed", record_path) < (int)bytes;
}

static hotfn_status release_killed(release *r, const char *record_path, hotfn_error *err)
{
    char path[4096];
    bool was_left = r->journal.header->state == HFN_JOURNAL_LEFT;
    bool is_saved = !was_left && name_rescued(path, sizeof path, record_path) &&
                    r->journal.header->state != HFN_JOURNAL_PREPARED;
    hotfn_status status = run_release(r, is_saved ? path : NULL, true, err);

    if (!r->removal.is_restored || was_left) {
        return status;
    }
    hfn_log_message(&r->env, HOTFN_LOG_WARNING,
                    "a hotfn that was killed had left hooks in process %u: they are removed%s%s",
                    r->remote.pid,
                    !is_saved            ? ""
                    : status == HOTFN_OK ? ", and its counts are in "
                                         : "; its counts could not be saved to ",
                    is_saved ? path : "");
    return HOTFN_OK;
}

static hotfn_status refuse_started(uint32_t pid, hotfn_error *err)
{
    hfn_remote_range record;

    return hfn_os_remote_find_shared(pid, HFN_RECORD_MEMORY_NAME, &record)
               ? hfn_report_error(err, HOTFN_E_STATE, NULL, HOTFN_NO_OFFSET,
                                  "process %u was started by hotfn run, or by a program that was: "
                                  "its calls are counted there",
                                  pid)
               : HOTFN_OK;
}

/* Begin the release of what a hotfn that was killed has left, if there is anything (*is_left);
 * finish_release must follow. */
static hotfn_status begin_if_left(release *r, uint32_t pid, bool *is_left, const hotfn_env *env,
                                  hotfn_error *err)
{
    hotfn_error why = HOTFN_ERROR_INIT;
    hotfn_status status = begin_release(r, pid, env, &why);

    *is_left = false;
    if (status == HOTFN_E_NOT_FOUND) {
        return refuse_started(pid, err);
    }
    if (status != HOTFN_OK) {
        return hfn_report_error(err, status, NULL, HOTFN_NO_OFFSET, "%s", why.text);
    }
    if (hfn_journal_is_in_use(&r->journal)) {
        return refuse_second(r, err);
    }
    *is_left = true;
    return HOTFN_OK;
}

hotfn_status hfn_release_find_other(uint32_t pid, bool *is_left, const hotfn_env *env,
                                    hotfn_error *err)
{
    release r;
    hotfn_status status = begin_if_left(&r, pid, is_left, env, err);

    finish_release(&r);
    return status;
}

hotfn_status hfn_release_before_attach(uint32_t pid, const char *record_path, const hotfn_env *env,
                                       hotfn_error *err)
{
    hfn_attach_check check = { .err = err };
    hotfn_status status = hfn_check_process(&check, pid);
    bool is_left;
    release r;

    if (status != HOTFN_OK) {
        return status;
    }
    status = begin_if_left(&r, pid, &is_left, env, err);
    if (status == HOTFN_OK && is_left) {
        status = release_killed(&r, record_path, err);
        status = status == HOTFN_OK ? refuse_started(pid, err) : status;
    }
    finish_release(&r);
    return status;
}
