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
#include "live/run_flags.h"
#include "session/joined.h"
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Settings: HOTFN_RUN=parent pid:live fd:channel fd:device:inode:flags, HOTFN_TARGET=glob. */

typedef struct settings {
    unsigned parent, live_fd, channel_fd, flags;
    unsigned long long device, inode;
    const char *target_glob;
} settings;

static const char *find_setting(char **envp, const char *name)
{
    size_t length = strlen(name);
    for (; *envp; envp++) {
        if (strncmp(*envp, name, length) == 0 && (*envp)[length] == '=') {
            return *envp + length + 1;
        }
    }
    return NULL;
}

static int parse_settings(char **envp, settings *s)
{
    enum { NUMBERS = 6 };
    const char *at = find_setting(envp, "HOTFN_RUN");
    unsigned long long numbers[NUMBERS] = { 0 };
    int count = 0;
    for (; at && count < NUMBERS && *at >= '0' && *at <= '9'; count++) {
        while (*at >= '0' && *at <= '9') {
            numbers[count] = numbers[count] * 10 + (unsigned)(*at++ - '0');
        }
        at += *at == ':';
    }
    *s = (settings){ (unsigned)numbers[0],
                     (unsigned)numbers[1],
                     (unsigned)numbers[2],
                     (unsigned)numbers[5],
                     numbers[3],
                     numbers[4],
                     find_setting(envp, "HOTFN_TARGET") };
    return count == NUMBERS;
}

static int is_target(const settings *s)
{
    char path[4096];
    struct stat self;
    if (s->flags & AGENT_INSIDE) {
        return 1;
    }
    if (s->target_glob) {
        ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
        path[n > 0 ? n : 0] = 0;
        const char *slash = strrchr(path, '/');
        return hotfn_glob_match(s->target_glob, path) == 1 ||
               (slash && hotfn_glob_match(s->target_glob, slash + 1) == 1);
    }
    return stat("/proc/self/exe", &self) == 0 && self.st_dev == s->device &&
           self.st_ino == s->inode;
}

/* ---- Restoring the environment: remove hotfn's variables, and the agent's entry of LD_PRELOAD. */

static void drop_entry(char **at)
{
    for (; *at; at++) {
        at[0] = at[1];
    }
}

/* Returns whether other entries remain.  A wrapper may have put other libraries in front of the
 * agent; an agent of another name is the first entry, where the launcher puts it.  Entries are
 * separated by colons or spaces (ld.so(8)). */
static bool remove_agent_entry(char *preloads)
{
    char *begin = preloads, *end;
    while (*begin && strncmp(begin, "hotfn-agent", 11) != 0) {
        begin++;
    }
    begin = *begin ? begin : preloads;
    end = begin;
    while (begin > preloads && begin[-1] != ':' && begin[-1] != ' ') {
        begin--;
    }
    while (*end && *end != ':' && *end != ' ') {
        end++;
    }
    if (*end) {
        memmove(begin, end + 1, strlen(end + 1) + 1);
    } else {
        *(begin > preloads ? begin - 1 : begin) = 0;
    }
    return *preloads != 0;
}

static void restore_environment(char **envp)
{
    for (char **at = envp; *at;) {
        bool dropped =
            strncmp(*at, "HOTFN_RUN=", 10) == 0 || strncmp(*at, "HOTFN_TARGET=", 13) == 0;

        if (strncmp(*at, "LD_PRELOAD=", 11) == 0) {
            dropped = !remove_agent_entry(*at + strlen("LD_PRELOAD="));
        }
        if (dropped) {
            drop_entry(at);
        } else {
            at++;
        }
    }
}

/* With --follow, children of the target are targets too.  The flags are the last three digits. */
static void mark_children(char **envp, unsigned flags)
{
    char *run = (char *)(uintptr_t)find_setting(envp, "HOTFN_RUN");
    char digits[4];
    size_t length = run ? strlen(run) : 0;
    if (length > 3) {
        snprintf(digits, sizeof digits, "%03u", (flags | AGENT_INSIDE) % 1000u);
        memcpy(run + length - 3, digits, 3);
    }
}

/* ---- Start. */

static hotfn_session *session;

const hotfn_hooks *agent_hooks(void)
{
    return session ? hotfn_session_get_hooks(session) : NULL;
}

static void join_run(const settings *s)
{
    char live[64], channel[64], perf[64];
    hotfn_env env = HOTFN_ENV_INIT;
    hotfn_error err = HOTFN_ERROR_INIT;
    hfn_join_options options = { 0 };
    hotfn_env_own_memory(&env); /* the target's malloc may be replaced, or not be initialised yet */
    snprintf(live, sizeof live, "/proc/%u/fd/%u", s->parent, s->live_fd);
    snprintf(channel, sizeof channel, "/proc/%u/fd/%u", s->parent, s->channel_fd);
    snprintf(perf, sizeof perf, "/tmp/perf-%d.map", (int)getpid());
    options.live_path = live;
    options.channel_path = channel;
    options.flags = HOTFN_SESSION_SINGLE_THREADED;
    options.perf_map_path = s->flags & AGENT_PERF_MAP ? perf : NULL;
    if (hfn_session_join(&session, &options, &env, &err) != HOTFN_OK &&
        (s->flags & (AGENT_QUIET | AGENT_INSIDE)) != (AGENT_QUIET | AGENT_INSIDE)) {
        dprintf(2, "hotfn agent: nothing is counted in process %d: %s%s%s\n", (int)getpid(),
                err.file, err.file[0] ? ": " : "", err.text);
    }
    agent_register_with_debuggers();
}

__attribute__((constructor)) static void agent_start(int argc, char **argv, char **envp)
{
    settings s = { 0 };
    (void)argc, (void)argv;
    if (!parse_settings(envp, &s) || !is_target(&s)) {
        return; /* a wrapper that will start the target: change nothing */
    }
    if (s.flags & AGENT_FOLLOW) {
        mark_children(envp, s.flags);
    } else {
        restore_environment(envp);
    }
    join_run(&s);
}
