/* SPDX-License-Identifier: MIT */
/*
 * The conditions of an attach, each reported as one sentence:
 *
 *   the system's  user, ptrace_scope, tracer, ...  os/linux/remote_check.c  also before an attach
 *   hotfn         another hotfn inside             release.c                also before an attach
 *   c-library     code of glibc, or no use of gs   enter.c                  the attach's first step
 *   threads       a free word in each thread       enter.c                  in the attach's stop
 *
 * An attach ends at the first condition that fails; hotfn_launch_check_attach continues as long as
 * the next one can be checked, and changes nothing in the process.
 */
#include "launch/attach/check.h"

#include "base/status.h"
#include "counters/core/core.h"
#include "launch/attach/attachment.h"
#include "launch/attach/release.h"
#include "launch/attach/timing.h"
#include "os/os.h"

#include <stdarg.h>
#include <stdio.h>

enum { THREAD_TRIES = 4 };

/* ---- Reporting. */

static void report_condition(hfn_attach_check *c, const char *name, hotfn_status status,
                             const char *text)
{
    if (c->report) {
        c->report(c->user, name, status, text);
    }
    if (status != HOTFN_OK && c->status == HOTFN_OK) {
        c->status = hfn_report_error(c->err, status, NULL, HOTFN_NO_OFFSET, "%s", text);
    }
}

/* ---- What the system reports. */

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

static void report_verdict(void *user, const char *name, hfn_remote_verdict verdict,
                           const char *text)
{
    hfn_attach_check *c = user;

    if (c->is_attached && (verdict == HFN_REMOTE_FILTERED || verdict == HFN_REMOTE_LOCKED)) {
        return;
    }
    c->is_unreadable = c->is_unreadable || verdict == HFN_REMOTE_NOT_FOUND ||
                       verdict == HFN_REMOTE_ENDED || verdict == HFN_REMOTE_DENIED ||
                       verdict == HFN_REMOTE_FOREIGN;
    report_condition(c, name, statuses[verdict], text);
}

hotfn_status hfn_check_process(hfn_attach_check *c, uint32_t pid)
{
    if (!hfn_os_can_enter_others() || hfn_core.byte_count == 0) {
        c->is_unreadable = true;
        report_condition(c, "system", HOTFN_E_UNSUPPORTED,
                         "on this CPU no process can be attached to: start it under hotfn run");
    } else {
        hfn_os_remote_check(pid, report_verdict, c);
    }
    return c->status;
}

/* ---- Another hotfn. */

/* Returns false if the code of the process may be hotfn's. */
static bool check_other_hotfn(hfn_attach_check *c, uint32_t pid, const hotfn_env *env)
{
    hotfn_error why = HOTFN_ERROR_INIT;
    bool is_left = false;
    hotfn_status status = hfn_release_find_other(pid, &is_left, env, &why);

    report_condition(c, "hotfn", status,
                     status != HOTFN_OK ? why.text
                     : is_left ? "an earlier hotfn has left code in it, which hotfn attach removes "
                                 "first (hotfn detach saves the counts of a hotfn that was killed)"
                               : "no other hotfn counts it");
    return status == HOTFN_OK && !is_left;
}

/* ---- Its code and its threads. */

/* As an attach: if a thread uses the word, another word is tried. */
static hotfn_status check_threads(hfn_attachment *a, hotfn_error *err)
{
    hotfn_status status = HOTFN_E_STATE;

    for (int i = 0; i < THREAD_TRIES && status == HOTFN_E_STATE; i++) {
        if (!hfn_attachment_choose_word(a, err)) {
            return HOTFN_E_UNSUPPORTED;
        }
        status = hfn_attachment_stop(a, err);
        if (status == HOTFN_OK) {
            status = hfn_attachment_check_threads(a, err);
        }
        hfn_attachment_resume(a);
    }
    return status;
}

/* A process whose calls cannot be timed can be attached to, so this does not change the result. */
static void check_times(const hfn_attach_check *c, hfn_attachment *a)
{
    hotfn_error why = HOTFN_ERROR_INIT;
    hotfn_status status = hfn_timed_check_modules(a, &why);
    char text[sizeof why.file + sizeof why.text + 8];

    snprintf(text, sizeof text, "%s%s%s", status == HOTFN_OK ? "" : why.file,
             status != HOTFN_OK && why.file[0] ? ": " : "",
             status == HOTFN_OK ? "its calls can be timed too (hotfn attach --mode time)"
                                : why.text);
    if (c->report) {
        c->report(c->user, "times", status, text);
    }
}

static void check_code(hfn_attach_check *c, hfn_attachment *a)
{
    hotfn_error why = HOTFN_ERROR_INIT;
    hotfn_status status = hfn_attachment_open(a, &why);
    char text[128] = "its threads have room for the address of their counts";

    report_condition(c, "c-library", status,
                     status != HOTFN_OK ? why.text
                     : a->uses_gs       ? "it does not use the gs segment, and its system calls "
                                          "that may begin threads can be followed"
                                        : "it has the fork function of glibc");
    /* A process that is traced or stopped by job control cannot be stopped here. */
    if (status == HOTFN_OK && c->status == HOTFN_OK) {
        status = check_threads(a, &why);
        snprintf(text, sizeof text,
                 "its threads have room for the address of their counts (they were stopped for "
                 "%.2f ms)",
                 (double)a->enter_ns / 1e6);
        report_condition(c, "threads", status, status == HOTFN_OK ? text : why.text);
    }
    if (c->status == HOTFN_OK) {
        check_times(c, a);
    }
    hfn_os_remote_close(&a->remote);
}

hotfn_status hotfn_launch_check_attach(uint32_t pid, hotfn_attach_check_fn report, void *user,
                                       const hotfn_env *env, hotfn_error *err)
{
    hfn_attach_check check = { .report = report, .user = user, .err = err };
    hotfn_env filled = hfn_env_fill(env);
    hfn_attachment *attachment;

    hfn_check_process(&check, pid);
    if (check.is_unreadable || !check_other_hotfn(&check, pid, &filled)) {
        return check.status;
    }
    attachment = hfn_attachment_create(&filled, NULL, pid);
    if (!attachment) {
        return hfn_report_no_memory(err, NULL);
    }
    check_code(&check, attachment);
    hfn_attachment_free(attachment);
    return check.status;
}
