/* SPDX-License-Identifier: MIT */
/* The child of `hotfn run`: started with the agent in its environment and nothing else changed, waited
 * for, and imitated in how it ended.  We ignore INT and QUIT (the terminal sends them to both) and
 * pass TERM and HUP on. */
#include "run.h"

#include "../run_flags.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
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

static bool set_environment(const run_options *o, const run_target *t, const char *agent,
                            pid_t parent, int live_fd, int handover_fd)
{
    char preload[2 * PATH_MAX], run[256];
    const char *before = getenv("LD_PRELOAD");
    unsigned flags = (o->follow ? AGENT_FOLLOW : 0) | (o->perf_map ? AGENT_PERF_MAP : 0);
    bool fits = snprintf(preload, sizeof preload, before ? "%s:%s" : "%s", agent, before) <
                (int)sizeof preload;
    snprintf(run, sizeof run, "%d:%d:%d:%llu:%llu:%03u", (int)parent, live_fd, handover_fd,
             (unsigned long long)t->device, (unsigned long long)t->inode, flags);
    return fits && setenv("LD_PRELOAD", preload, 1) == 0 && setenv("HOTFN_RUN", run, 1) == 0 &&
           (!o->target_glob || setenv("HOTFN_TARGET", o->target_glob, 1) == 0);
}

/* In the child: never returns. */
static void become(const run_options *o, const run_target *t, int tell)
{
    execv(t->file, o->command);
    int failed = errno;
    ssize_t n = write(tell, &failed, sizeof failed);
    _exit(n == (ssize_t)sizeof failed ? RUN_FAILED : RUN_FAILED);
}

static int exec_error(const char *file, int error)
{
    fprintf(stderr, "hotfn run: %s: %s\n", file, strerror(error));
    return error == ENOENT ? RUN_NOT_FOUND : RUN_NOT_EXECUTABLE;
}

static void take_signals(struct sigaction before[4], bool restore)
{
    static const int numbers[4] = { SIGINT, SIGQUIT, SIGTERM, SIGHUP };
    struct sigaction ignore = { .sa_handler = SIG_IGN };
    struct sigaction pass = { .sa_handler = forward, .sa_flags = SA_RESTART };
    for (int i = 0; i < 4; i++) {
        if (restore) {
            sigaction(numbers[i], &before[i], NULL);
        } else {
            sigaction(numbers[i], i < 2 ? &ignore : &pass, &before[i]);
        }
    }
}

int run_child_start(run_child *c, const run_options *o, const run_target *t, const char *agent,
                    int live_fd, int handover_fd)
{
    int tell[2], failed = 0;
    struct sigaction before[4];
    pid_t parent = getpid();
    if (pipe2(tell, O_CLOEXEC) != 0) {
        return exec_error(t->file, errno);
    }
    take_signals(before, false);
    c->pid = fork();
    if (c->pid == 0) {
        take_signals(before, true);
        if (!set_environment(o, t, agent, parent, live_fd, handover_fd)) {
            _exit(RUN_FAILED);
        }
        become(o, t, tell[1]);
    }
    close(tell[1]);
    if (c->pid < 0) {
        close(tell[0]);
        return exec_error(t->file, errno);
    }
    forward_to = c->pid;
    ssize_t n = read(tell[0], &failed, sizeof failed);
    close(tell[0]);
    if (n == (ssize_t)sizeof failed) {
        waitpid(c->pid, NULL, 0);
        return exec_error(t->file, failed);
    }
    return 0;
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
