/* SPDX-License-Identifier: MIT */
/* Releasing a process that another hotfn has attached to.  If that hotfn still runs, it ends its
 * run; if it was killed, its counts are saved. */
#include "launch/attach/release.h"

#include "base/status.h"
#include "counters/core/core.h"
#include "launch/attach/removal.h"
#include "launch/attach/rescue.h"
#include "live/live.h"
#include "os/os.h"

#include <hotfn/launch.h>
#include <stdio.h>

/* ---- May the process be entered? */

static const hotfn_status statuses[] = {
    [HFN_REMOTE_READY] = HOTFN_OK,
    [HFN_REMOTE_NOT_FOUND] = HOTFN_E_NOT_FOUND,
    [HFN_REMOTE_ENDED] = HOTFN_E_NOT_FOUND,
    [HFN_REMOTE_SUSPENDED] = HOTFN_E_STATE,
    [HFN_REMOTE_TRACED] = HOTFN_E_STATE,
    [HFN_REMOTE_DENIED] = HOTFN_E_DENIED,
    [HFN_REMOTE_FILTERED] = HOTFN_E_UNSUPPORTED,
    [HFN_REMOTE_LOCKED] = HOTFN_E_UNSUPPORTED,
    [HFN_REMOTE_FOREIGN] = HOTFN_E_UNSUPPORTED,
};

static hotfn_status check_process(uint32_t pid, bool is_attached, hotfn_error *err)
{
    char why[256];
    hfn_remote_verdict verdict;

    if (!hfn_os_can_enter_others() || hfn_core.byte_count == 0) {
        return hfn_report_error(err, HOTFN_E_UNSUPPORTED, NULL, HOTFN_NO_OFFSET,
                                "on this CPU no process can be attached to: start it under "
                                "hotfn run");
    }
    verdict = hfn_os_remote_check(pid, why, sizeof why);
    if (verdict == HFN_REMOTE_READY ||
        (is_attached && (verdict == HFN_REMOTE_FILTERED || verdict == HFN_REMOTE_LOCKED))) {
        return HOTFN_OK;
    }
    return hfn_report_error(err, statuses[verdict], NULL, HOTFN_NO_OFFSET, "%s", why);
}

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
static hotfn_status run_release(release *r, const char *record_path, hotfn_error *err)
{
    bool saves = record_path && !hfn_journal_is_in_use(&r->journal) &&
                 r->journal.header->state != HFN_JOURNAL_PREPARED;
    uint32_t pid = r->remote.pid;

    r->removal = (hfn_removal){ .remote = &r->remote, .journal = &r->journal, .buffer = r->buffer };
    if (saves) {
        r->rescue.journal = &r->journal;
        r->rescue.buffer = r->buffer;
        r->rescue.buffer_bytes = HFN_REMOVAL_BUFFER_BYTES;
        r->removal.before_unmap = hfn_rescue_copy;
        r->removal.user = &r->rescue;
    }
    hfn_removal_run(&r->removal);
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
                        "%u bytes of code were changed by others and were left alone",
                        r->removal.foreign);
    }
    return saves ? save_counts(r, record_path, err) : HOTFN_OK;
}

hotfn_status hotfn_launch_release(uint32_t pid, const char *record_path, uint64_t *stop_ns,
                                  const hotfn_env *env, hotfn_error *err)
{
    hotfn_status status = check_process(pid, true, err);
    release r;

    if (status != HOTFN_OK) {
        return status;
    }
    status = begin_release(&r, pid, env, err);
    if (status == HOTFN_OK) {
        status = run_release(&r, record_path, err);
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
    bool is_saved = name_rescued(path, sizeof path, record_path) &&
                    r->journal.header->state != HFN_JOURNAL_PREPARED;
    hotfn_status status = run_release(r, is_saved ? path : NULL, err);

    if (!r->removal.is_restored) {
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

hotfn_status hfn_release_before_attach(uint32_t pid, const char *record_path, const hotfn_env *env,
                                       hotfn_error *err)
{
    hotfn_error why = HOTFN_ERROR_INIT;
    hotfn_status status = check_process(pid, false, err);
    hfn_remote_range record;
    release r;

    if (status != HOTFN_OK) {
        return status;
    }
    status = begin_release(&r, pid, env, &why);
    if (status == HOTFN_OK) {
        status = hfn_journal_is_in_use(&r.journal) ? refuse_second(&r, err)
                                                   : release_killed(&r, record_path, err);
    } else if (status == HOTFN_E_NOT_FOUND) {
        status = HOTFN_OK;
    } else {
        hfn_report_error(err, status, NULL, HOTFN_NO_OFFSET, "%s", why.text);
    }
    finish_release(&r);
    if (status == HOTFN_OK && hfn_os_remote_find_shared(pid, HFN_RECORD_MEMORY_NAME, &record)) {
        return hfn_report_error(err, HOTFN_E_STATE, NULL, HOTFN_NO_OFFSET,
                                "process %u was started by hotfn run, or by a program that was: "
                                "its calls are counted there",
                                pid);
    }
    return status;
}
