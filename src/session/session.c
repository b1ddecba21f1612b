/* SPDX-License-Identifier: MIT */
/* The calls that are the same for all sources of plans: start, snapshot, stop, follow fork().  This
 * file must not use the scanner, because it is part of the agent, which must not contain a
 * decoder. */
#include "session/session.h"
#include "base/status.h"
#include "counters/rows.h"
#include "counters/thread_row.h"
#include "counters/timing/timing.h"
#include "live/live.h"
#include "records/finish.h"

#include <hotfn/lowlevel/session.h>

#include <stdio.h>

/* The session of this process, for the fork handlers, which are registered once and never removed.
 */
static hotfn_session *the_session;
static bool follows_fork; /* changed only by the owner of the_session */

static void begin_process(hotfn_session *s)
{
    s->is_verified = false;
    s->process.id = hfn_rows_may_call(HFN_CALLS_FORK) ? hfn_os_get_process_id() : 0;
    atomic_store(&s->process.busy, 0); /* another thread of the parent may have been in a check */
    hfn_live_begin_process(s->live);
}

static void before_fork(void)
{
    if (the_session && the_session->process.counters) {
        hotfn_counters_fork_prepare(the_session->process.counters);
    }
}

static void after_fork_parent(void)
{
    if (the_session && the_session->process.counters) {
        hotfn_counters_fork_parent(the_session->process.counters);
    }
}

static void after_fork_child(void)
{
    if (the_session && the_session->process.counters) {
        begin_process(the_session);
        /* The parent's threads advance the clock, which both processes map. */
        the_session->ticker.has_spinner = the_session->ticker.has_sleeper = false;
        hotfn_counters_fork_child(the_session->process.counters);
    }
}

hotfn_status hfn_session_claim(hotfn_session *session, hotfn_error *err)
{
    hotfn_session *none = NULL;
    if (!__atomic_compare_exchange_n(&the_session, &none, session, 0, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE)) {
        return hfn_report_error(err, HOTFN_E_STATE, NULL, HOTFN_NO_OFFSET,
                                "this process has a session already: destroy it first");
    }
    if (!follows_fork) {
        follows_fork = hfn_os_on_fork(before_fork, after_fork_parent, after_fork_child);
    }
    return HOTFN_OK;
}

void hfn_session_release(hotfn_session *session)
{
    hotfn_session *own = session;
    __atomic_compare_exchange_n(&the_session, &own, NULL, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

const hotfn_hooks *hfn_session_current_hooks(void)
{
    const hotfn_session *session = __atomic_load_n(&the_session, __ATOMIC_ACQUIRE);
    return session ? session->process.hooks : NULL;
}

hotfn_session *hfn_session_current(void)
{
    return __atomic_load_n(&the_session, __ATOMIC_ACQUIRE);
}

hfn_live *hfn_session_current_live(void)
{
    const hotfn_session *session = __atomic_load_n(&the_session, __ATOMIC_ACQUIRE);
    return session ? session->live : NULL;
}

bool hfn_session_verify(void)
{
    hotfn_session *session = __atomic_load_n(&the_session, __ATOMIC_ACQUIRE);
    bool verified = session && session->running && hfn_process_check(&session->process);

    /* only once for each process, even if several threads exit at the same time */
    verified = verified && !__atomic_exchange_n(&session->is_verified, true, __ATOMIC_RELAXED);
    if (verified) {
        hfn_live_set_verified(session->live);
    }
    return verified;
}

void hfn_session_forbid_calls(uint32_t groups)
{
    hotfn_session *session = __atomic_load_n(&the_session, __ATOMIC_ACQUIRE);

    __atomic_fetch_or(&hfn_rows.forbidden, groups, __ATOMIC_RELAXED);
    if (session && (groups & HFN_CALLS_CHECK)) {
        session->process.forbids_checks = true;
    }
    if (groups & HFN_CALLS_TIME) {
        hfn_timing_stop_waiting();
    }
}

void hfn_session_revoke_verified(void)
{
    hotfn_session *session = __atomic_load_n(&the_session, __ATOMIC_ACQUIRE);

    if (session) {
        __atomic_store_n(&session->is_verified, false, __ATOMIC_RELAXED);
        hfn_live_revoke_verified(session->live);
    }
}

bool hfn_session_begin_exec(void)
{
    bool verified = hfn_session_verify();

    hfn_rows_mark_exec(true);
    return verified;
}

void hfn_session_fail_exec(bool was_verified)
{
    hfn_rows_mark_exec(false);
    if (was_verified) {
        hfn_session_revoke_verified();
    }
}

/* ---- The session. */

hotfn_session *hfn_session_new(const hotfn_env *env)
{
    hotfn_env filled = hfn_env_fill(env);
    hotfn_session *s = hfn_allocate_zeroed(&filled, sizeof *s);
    if (s) {
        s->env = filled;
        s->stats.size = sizeof s->stats;
        hfn_arena_init(&s->texts, &s->env);
    }
    return s;
}

static hotfn_session_stats convert_stats(const hfn_process *process)
{
    const hfn_start_stats *from = &process->stats;

    return (hotfn_session_stats){
        .size = sizeof(hotfn_session_stats),
        .hooked = from->hooked,
        .refused = from->refused,
        .stub_bytes = from->stub_bytes,
        .unwind_bytes = from->unwind_bytes,
        .table_bytes = from->table_bytes,
        .copied_page_bytes = from->copied_page_bytes,
        .total_ns = from->total_ns,
    };
}

static void stop_clock(hotfn_session *s)
{
    if (s->stop_clock) {
        s->stop_clock(s);
    }
}

hotfn_status hotfn_session_start(hotfn_session *s, hotfn_error *err)
{
    uint32_t hook_flags, remaining;
    hotfn_status status;
    void *paused;

    if (!s) {
        return hfn_report_null(err, __func__);
    }
    if (s->running) {
        return hfn_report_error(err, HOTFN_E_STATE, NULL, HOTFN_NO_OFFSET,
                                "the session is already running");
    }
    if (s->finish_reading) {
        s->finish_reading(s);
    }
    if (s->start_clock) {
        s->start_clock(s);
    }
    hook_flags = s->hook_flags;
    hook_flags |= s->flags & HOTFN_SESSION_SINGLE_THREADED ? HOTFN_HOOKS_SINGLE_THREADED : 0;
    status = hfn_process_init(&s->process, s->live, s->flags, hook_flags, s->source, &s->env, err);
    if (status != HOTFN_OK) {
        stop_clock(s);
        return status;
    }
    s->process.runtime = s->runtime;
    s->process.off_groups = s->off_groups;
    paused = hotfn_counters_pause();
    status = hfn_process_update(&s->process, err);
    hotfn_counters_resume(paused);
    if (status != HOTFN_OK) {
        stop_clock(s);
        hfn_process_finish(&s->process, &remaining, NULL);
        return status;
    }
    begin_process(s);
    s->running = true;
    return HOTFN_OK;
}

hotfn_status hotfn_session_get_stats(const hotfn_session *s, hotfn_session_stats *out)
{
    hotfn_session_stats stats;

    if (!s) {
        return HOTFN_E_OPTION;
    }
    stats = s->running ? convert_stats(&s->process) : s->stats;
    return hfn_copy_result(out, &stats, sizeof stats);
}

/* A snapshot must not show counts of patches that other code has overwritten. */
static void check_running(const hotfn_session *s)
{
    hotfn_session *own = __atomic_load_n(&the_session, __ATOMIC_ACQUIRE);

    if (own == s && own->running) {
        hfn_process_check(&own->process);
    }
}

hotfn_status hotfn_session_snapshot(hotfn_record **out, const hotfn_session *s, hotfn_error *err)
{
    if (!s || !out) {
        return hfn_report_null(err, __func__);
    }

    char path[64];
    void *paused = hotfn_counters_pause();
    check_running(s);
    hfn_live_read_threads(s->live);
    hfn_os_get_file_path(s->live->file, path, sizeof path);
    hotfn_status status = hotfn_record_open(out, path, &s->env, err);
    hotfn_counters_resume(paused);
    return status;
}

hotfn_status hotfn_session_save(hotfn_session *s, const char *path, hotfn_error *err)
{
    if (!s || !path) {
        return hfn_report_null(err, __func__);
    }

    void *paused = hotfn_counters_pause();
    check_running(s);
    hfn_live_read_threads(s->live);
    hotfn_status status = hfn_live_finish(s->live, path, HOTFN_RECORD_FINISHED, 0, NULL, NULL, err);
    hotfn_counters_resume(paused);
    return status;
}

hotfn_status hotfn_session_stop(hotfn_session *s, hotfn_error *err)
{
    hotfn_error why = HOTFN_ERROR_INIT;

    if (!s) {
        return hfn_report_null(err, __func__);
    }
    if (!s->running) {
        return hfn_report_error(err, HOTFN_E_STATE, NULL, HOTFN_NO_OFFSET,
                                "the session is not running");
    }
    hfn_session_verify();
    s->running = false;
    s->stats = convert_stats(&s->process);
    stop_clock(s); /* first, because its thread runs code near the probes that are searched for */
    s->stats.remaining_status = hfn_process_finish(&s->process, &s->stats.remaining, &why);
    if (s->stats.remaining_status != HOTFN_OK) {
        hfn_log_message(&s->env, HOTFN_LOG_WARNING,
                        "%u hooks remain in place but no longer count: %s", s->stats.remaining,
                        why.text);
    }
    return HOTFN_OK;
}

const hotfn_hooks *hotfn_session_get_hooks(const hotfn_session *s)
{
    return s ? s->process.hooks : NULL;
}

void hotfn_session_destroy(hotfn_session *s)
{
    if (!s) {
        return;
    }
    if (s->running) {
        hotfn_session_stop(s, NULL);
    }
    if (s->finish_reading) {
        s->finish_reading(s);
    }
    hfn_session_release(s);
    if (s->release) {
        s->release(s);
    }
    hfn_live_close(s->live);
    hotfn_env env = s->env;
    hfn_arena_finish(&s->texts);
    hfn_free_memory(&env, s, sizeof *s);
}
