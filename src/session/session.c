/* SPDX-License-Identifier: MIT */
/* What every session does, wherever its plans come from: start, snapshot, stop, follow fork().
 * It must not name the scanner: the agent links it, and no decoder goes into a target. */
#include "session/session.h"
#include "base/status.h"

#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

/* The one session of this process, for fork handlers; they are registered once and never removed. */
static hotfn_session *the_session;
static bool follows_fork; /* its holder's to change */

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
        hotfn_counters_fork_child(the_session->process.counters);
    }
}

hotfn_status hfn_session_claim(hotfn_session *session, hotfn_error *err)
{
    hotfn_session *none = NULL;
    if (!__atomic_compare_exchange_n(&the_session, &none, session, 0, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE)) {
        return hfn_fail(err, HOTFN_E_STATE, NULL, HOTFN_NO_OFFSET,
                        "this process has a session already: destroy it first");
    }
    if (!follows_fork) {
        follows_fork = pthread_atfork(before_fork, after_fork_parent, after_fork_child) == 0;
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

hotfn_live *hfn_session_current_live(void)
{
    const hotfn_session *session = __atomic_load_n(&the_session, __ATOMIC_ACQUIRE);
    return session ? session->live : NULL;
}

/* ---- The session. */

hotfn_session *hfn_session_new(const hotfn_env *env)
{
    hotfn_env filled = hfn_env_fill(env);
    hotfn_session *s = hfn_alloc(&filled, sizeof *s);
    if (s) {
        s->env = filled;
        hfn_arena_init(&s->texts, &s->env);
    }
    return s;
}

hotfn_status hotfn_session_start(hotfn_session *s, hotfn_commit_stats *stats, hotfn_error *err)
{
    const hotfn_commit_stats none = HOTFN_COMMIT_STATS_INIT;
    if (!s) {
        return hfn_fail_null(err, __func__);
    }
    if (s->running) {
        return hfn_fail(err, HOTFN_E_STATE, NULL, HOTFN_NO_OFFSET, "the session runs already");
    }
    if (stats && !hfn_give(stats, &none, sizeof none)) {
        return hfn_fail(err, HOTFN_E_OPTION, NULL, HOTFN_NO_OFFSET, "stats of unknown size");
    }
    uint32_t hook_flags = s->hook_flags;
    hook_flags |= s->flags & HOTFN_SESSION_SINGLE_THREADED ? HOTFN_HOOKS_SINGLE_THREADED : 0;
    hotfn_status status =
        hfn_process_init(&s->process, s->live, s->flags, hook_flags, s->source, &s->env, err);
    if (status != HOTFN_OK) {
        return status;
    }
    void *paused = hotfn_counters_pause();
    status = hfn_process_update(&s->process, err);
    hotfn_counters_resume(paused);
    if (status != HOTFN_OK) {
        hfn_process_finish(&s->process, NULL);
        return status;
    }
    s->running = true;
    if (stats) {
        hfn_give(stats, &s->process.stats, sizeof s->process.stats);
    }
    return HOTFN_OK;
}

hotfn_status hotfn_session_snapshot(const hotfn_session *s, hotfn_record **out, hotfn_error *err)
{
    if (!s || !out) {
        return hfn_fail_null(err, __func__);
    }

    char path[64];
    void *paused = hotfn_counters_pause();
    snprintf(path, sizeof path, "/proc/self/fd/%d", hotfn_live_fd(s->live));
    hotfn_status status = hotfn_record_open(out, path, &s->env, err);
    hotfn_counters_resume(paused);
    return status;
}

hotfn_status hotfn_session_save(hotfn_session *s, const char *path, hotfn_error *err)
{
    if (!s || !path) {
        return hfn_fail_null(err, __func__);
    }

    void *paused = hotfn_counters_pause();
    hotfn_status status =
        hotfn_live_finish(s->live, path, HOTFN_RECORD_FINISHED, 0, NULL, NULL, err);
    hotfn_counters_resume(paused);
    return status;
}

hotfn_status hotfn_session_stop(hotfn_session *s, hotfn_error *err)
{
    if (!s) {
        return hfn_fail_null(err, __func__);
    }
    if (!s->running) {
        return hfn_fail(err, HOTFN_E_STATE, NULL, HOTFN_NO_OFFSET, "the session does not run");
    }
    s->running = false;
    return hfn_process_finish(&s->process, err);
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
    hfn_session_release(s);
    if (s->release) {
        s->release(s);
    }
    hotfn_live_close(s->live);
    hotfn_env env = s->env;
    hfn_arena_finish(&s->texts);
    hfn_free(&env, s, sizeof *s);
}
