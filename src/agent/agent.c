/* SPDX-License-Identifier: MIT */
/* The agent, which `hotfn run` preloads.  It decides whether this process is the target, restores
 * the environment that the program would have without hotfn, and joins the parent's run.  HOTFN_*
 * settings are parsed only here.
 *
 * Because of -z initfirst the constructor runs before all others, including libc's: getenv does not
 * work yet.  Functions of the C library that are called here are the agent's own (agent/libc). */
#include <hotfn.h>
#include <hotfn/lowlevel.h>

#include "agent/agent.h"
#include "agent/libc/find_symbol.h"
#include "live/run_flags.h"
#include "os/os.h"
#include "runtimes/art.h"
#include "runtimes/objc.h"
#include "runtimes/python.h"
#include "session/joined.h"
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- Settings: HOTFN_RUN=parent pid:live fd:channel fd:target pid:flags, HOTFN_TARGET=glob.  The
 * target pid is 0 until the target calls exec; then it identifies the process that must join. */

typedef agent_settings settings;

static int parse_settings(char **envp, settings *s)
{
    enum { NUMBERS = 5 };
    const char *at = agent_find_setting(envp, "HOTFN_RUN");
    unsigned long long numbers[NUMBERS] = { 0 };
    int count = 0;
    for (; at && count < NUMBERS && *at >= '0' && *at <= '9'; count++) {
        while (*at >= '0' && *at <= '9') {
            numbers[count] = numbers[count] * 10 + (unsigned)(*at++ - '0');
        }
        at += *at == ':';
    }
    *s = (settings){ (unsigned)numbers[0], (unsigned)numbers[1],
                     (unsigned)numbers[2], (unsigned)numbers[3],
                     (unsigned)numbers[4], agent_find_setting(envp, "HOTFN_TARGET") };
    return count == NUMBERS;
}

static int matches_glob(const char *glob, const char *path)
{
    const char *slash = strrchr(path, '/');
    return hotfn_glob_match(glob, path) == 1 || (slash && hotfn_glob_match(glob, slash + 1) == 1);
}

static int is_target(const settings *s)
{
    char path[4096];
    bool is_script;
    if (s->flags & AGENT_INSIDE || !s->target_glob) {
        return 1;
    }
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    path[n > 0 ? n : 0] = 0;
    return matches_glob(s->target_glob, path) ||
           (hfn_os_get_start_path(path, sizeof path, &is_script) && !is_script &&
            matches_glob(s->target_glob, path));
}

/* ---- Start. */

static hotfn_session *session;

const hotfn_hooks *agent_hooks(void)
{
    return session ? hotfn_session_get_hooks(session) : NULL;
}

/* The target has called exec.  The launcher begins a new record, because the counts of the previous
 * program do not belong to this one. */
static hotfn_status request_record(settings *s, hotfn_error *err)
{
    char channel[64];
    hfn_run_files files;
    snprintf(channel, sizeof channel, "/proc/%u/fd/%u", s->parent, s->channel_fd);
    hotfn_status status = hfn_session_request_image(channel, &files, err);
    if (status == HOTFN_OK) {
        s->live_fd = files.live_fd;
        s->channel_fd = files.channel_fd;
    }
    return status;
}

static void print_warning(const char *text)
{
    dprintf(2, "hotfn agent: %s\n", text);
}

static void print_nothing(const char *text)
{
    (void)text;
}

static const hfn_runtime *choose_runtime(unsigned flags)
{
    const hfn_runtime_process process = { agent_find_symbol,
                                          flags & AGENT_QUIET ? print_nothing : print_warning };
    if (flags & AGENT_ART) {
        return hfn_art_get_runtime(&process);
    }
    if (flags & AGENT_OBJC) {
        return hfn_objc_get_runtime(&process);
    }
    return flags & AGENT_PYTHON ? hfn_python_get_runtime(&process) : NULL;
}

static hotfn_status join_record(const settings *s, hotfn_error *err)
{
    char live[64], channel[64], perf[64];
    hotfn_env env = HOTFN_ENV_INIT;
    hfn_join_options options = { 0 };
    hotfn_env_own_memory(&env); /* the target's malloc may be replaced, or not be initialised yet */
    snprintf(live, sizeof live, "/proc/%u/fd/%u", s->parent, s->live_fd);
    snprintf(channel, sizeof channel, "/proc/%u/fd/%u", s->parent, s->channel_fd);
    snprintf(perf, sizeof perf, "/tmp/perf-%d.map", (int)getpid());
    options.live_path = live;
    options.channel_path = channel;
    options.flags = HOTFN_SESSION_SINGLE_THREADED;
    options.perf_map_path = s->flags & AGENT_PERF_MAP ? perf : NULL;
    options.runtime = choose_runtime(s->flags);
    return hfn_session_join(&session, &options, &env, err);
}

static void join_run(settings *s)
{
    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_status status = s->flags & AGENT_NEXT ? request_record(s, &err) : HOTFN_OK;
    if (status == HOTFN_OK) {
        status = join_record(s, &err);
    }
    if (status != HOTFN_OK &&
        (s->flags & (AGENT_QUIET | AGENT_INSIDE)) != (AGENT_QUIET | AGENT_INSIDE)) {
        dprintf(2, "hotfn agent: nothing is counted in process %d: %s%s%s\n", (int)getpid(),
                err.file, err.file[0] ? ": " : "", err.text);
    }
    agent_register_with_debuggers();
}

__attribute__((constructor)) static void agent_start(int argc, char **argv, char **envp)
{
    settings s = { 0 };
    static char preload[4096];
    (void)argc, (void)argv;
    if (!parse_settings(envp, &s) || !is_target(&s)) {
        return; /* a wrapper that will start the target: change nothing */
    }
    size_t preload_bytes = agent_copy_preload(envp, preload, sizeof preload);
    if (s.flags & AGENT_FOLLOW) {
        agent_mark_children(envp, s.flags);
    } else {
        agent_restore_environment(envp);
    }
    if (s.flags & AGENT_NEXT && s.pid != hfn_os_get_process_id()) {
        return; /* a child of a program that the agent could not enter */
    }
    join_run(&s);
    agent_follow_exec(&s, preload, preload_bytes);
}
