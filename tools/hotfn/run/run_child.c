/* SPDX-License-Identifier: MIT */
/* The child of `hotfn run`: started with the agent in its environment and nothing else changed, waited
 * for, and imitated in how it ended.  We ignore INT and QUIT (the terminal sends them to both) and
 * pass TERM and HUP on. */
#include "run.h"

#include "../../../src/live/run_flags.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile pid_t forward_to;

static void forward(int signal_number)
{
    if (forward_to > 0) {
        kill(forward_to, signal_number);
    }
}

/* In our own environment: nothing else is started with it. */
static bool set_environment(const run_options *o, const run_target *t, const char *agent,
                            pid_t parent, int live_fd, int handover_fd)
{
    char preload[2 * PATH_MAX], run[256];
    const char *before = getenv("LD_PRELOAD");
    unsigned flags = (o->follow ? AGENT_FOLLOW : 0) | (o->perf_map ? AGENT_PERF_MAP : 0) |
                     (o->quiet ? AGENT_QUIET : 0);
    bool fits = snprintf(preload, sizeof preload, before ? "%s:%s" : "%s", agent, before) <
                (int)sizeof preload;
    snprintf(run, sizeof run, "%d:%d:%d:%llu:%llu:%03u", (int)parent, live_fd, handover_fd,
             (unsigned long long)t->device, (unsigned long long)t->inode, flags);
    return fits && setenv("LD_PRELOAD", preload, 1) == 0 && setenv("HOTFN_RUN", run, 1) == 0 &&
           (!o->target_glob || setenv("HOTFN_TARGET", o->target_glob, 1) == 0);
}

static int exec_error(const char *file, int error)
{
    fprintf(stderr, "hotfn run: %s: %s\n", file, strerror(error));
    return error == ENOENT ? RUN_NOT_FOUND : RUN_NOT_EXECUTABLE;
}

static const int our_signals[4] = { SIGINT, SIGQUIT, SIGTERM, SIGHUP };

static void take_signals(void)
{
    struct sigaction ignore = { .sa_handler = SIG_IGN };
    struct sigaction pass = { .sa_handler = forward, .sa_flags = SA_RESTART };
    for (int i = 0; i < 4; i++) {
        sigaction(our_signals[i], i < 2 ? &ignore : &pass, NULL);
    }
}

/* 32 and 33, which glibc keeps for itself: its posix_spawn has them ignored in the child unless it is told
 * otherwise (glibc, sysdeps/unix/sysv/linux/spawni.c), and its sigaddset knows them not.  The kernel's set has
 * bit n - 1 for signal n. */
static sigset_t libc_signals(void)
{
    const unsigned long bits = 3ul << 31;
    sigset_t set;
    sigemptyset(&set);
    memcpy(&set, &bits, sizeof bits);
    return set;
}

/* With no copy of our memory made first, as fork would; 0 or an errno.  The child's signals are as ours were. */
static int spawn(run_child *c, const run_options *o, const run_target *t, const sigset_t *mask)
{
    posix_spawnattr_t how;
    int failed = posix_spawnattr_init(&how);
    if (failed != 0) {
        return failed;
    }
    posix_spawnattr_setsigmask(&how, mask);
    sigset_t own = libc_signals();
    posix_spawnattr_setsigdefault(&how, &own);
    posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    failed = posix_spawn(&c->pid, t->file, NULL, &how, o->command, environ);
    posix_spawnattr_destroy(&how);
    return failed;
}

int run_child_start(run_child *c, const run_options *o, const run_target *t, const char *agent,
                    int live_fd, int handover_fd)
{
    sigset_t ours, before;
    if (!set_environment(o, t, agent, getpid(), live_fd, handover_fd)) {
        return exec_error(t->file, E2BIG);
    }
    /* One that comes now waits until it can be passed on. */
    sigemptyset(&ours);
    for (int i = 0; i < 4; i++) {
        sigaddset(&ours, our_signals[i]);
    }
    sigprocmask(SIG_BLOCK, &ours, &before);
    int failed = spawn(c, o, t, &before);
    if (failed == 0) {
        forward_to = c->pid;
        take_signals();
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    return failed == 0 ? 0 : exec_error(t->file, failed);
}

/* A budget's thread may hold it by ptrace for a moment: that is seen here, and left to that thread. */
void run_child_wait(const run_child *c)
{
    static const struct timespec moment = { 0, 200000 };
    for (;;) {
        siginfo_t info = { 0 };
        int waited = waitid(P_PID, (id_t)c->pid, &info, WEXITED | WNOWAIT);
        if (waited != 0 && errno != EINTR) {
            return;
        }
        if (waited == 0 && info.si_code != CLD_TRAPPED && info.si_code != CLD_STOPPED) {
            return;
        }
        if (waited == 0) {
            nanosleep(&moment, NULL);
        }
    }
}

void run_child_reap(run_child *c)
{
    while (waitpid(c->pid, &c->status, 0) < 0 && errno == EINTR) {
    }
    forward_to = 0;
}

void run_child_imitate(const run_child *c)
{
    if (WIFSIGNALED(c->status)) {
        int number = WTERMSIG(c->status);
        struct rlimit no_core = { 0, 0 }; /* the child left its own */
        sigset_t one;
        setrlimit(RLIMIT_CORE, &no_core);
        signal(number, SIG_DFL);
        sigemptyset(&one);
        sigaddset(&one, number);
        sigprocmask(SIG_UNBLOCK, &one, NULL);
        fflush(NULL);
        raise(number);
        _exit(128 + number);
    }
    exit(WIFEXITED(c->status) ? WEXITSTATUS(c->status) : RUN_FAILED);
}
