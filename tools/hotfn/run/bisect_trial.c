/* SPDX-License-Identifier: MIT */
/* One trial of `hotfn bisect`: runs the command without hooks, or under `hotfn run` of this same
 * executable.  stdout and stderr go to files, stdin is the same in every trial, and the time is
 * limited. */
#include "bisect.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define GRACE_NS 2000000000ull /* between SIGTERM and SIGKILL for a hung trial */

static sigset_t old_mask, our_signals;

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static bool report_failure(const char *what, const char *path)
{
    fprintf(stderr, "hotfn bisect: %s: %s: %s\n", path, what, strerror(errno));
    return false;
}

/* ---- Begin and end. */

/* Copy stdin to a file, so that every trial reads the same input. */
static bool keep_input(const bisect_setup *s)
{
    char path[PATH_MAX], bytes[65536];
    ssize_t n = 0;

    bisect_make_path(s, "input", path);
    int out = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (out < 0) {
        return report_failure("cannot be written", path);
    }
    while (!isatty(STDIN_FILENO) && (n = read(STDIN_FILENO, bytes, sizeof bytes)) > 0) {
        if (write(out, bytes, (size_t)n) != n) {
            break;
        }
    }
    return close(out) == 0 && n <= 0 ? true : report_failure("cannot be written", path);
}

bool bisect_begin(bisect_setup *s)
{
    const char *base = getenv("TMPDIR");
    ssize_t n = readlink("/proc/self/exe", s->self, sizeof s->self - 1);

    s->self[n > 0 ? n : 0] = 0;
    snprintf(s->folder, sizeof s->folder, "%s/hotfn-bisect-XXXXXX", base && *base ? base : "/tmp");
    if (!mkdtemp(s->folder)) {
        return report_failure("cannot create this folder (is TMPDIR writable?)", s->folder);
    }
    sigemptyset(&our_signals);
    sigaddset(&our_signals, SIGINT);
    sigaddset(&our_signals, SIGTERM);
    sigaddset(&our_signals, SIGCHLD);
    sigprocmask(SIG_BLOCK, &our_signals, &old_mask);
    return keep_input(s);
}

void bisect_end(bisect_setup *s)
{
    static const char *const files[] = { "input", "errors",   "list",   "record.hfr",
                                         "bare",  "bare-too", "hooked", "trial" };
    char path[PATH_MAX];

    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        bisect_make_path(s, files[i], path);
        unlink(path);
    }
    rmdir(s->folder);
    sigprocmask(SIG_SETMASK, &old_mask, NULL);
}

/* ---- The child. */

/* hotfn run [options] -q -o record [--only-list list] -- command.  The fixed options come last and
 * so override those of the user. */
static char **build_hooked_command(const bisect_setup *s, const char *list, char *record)
{
    int command_count = 0, at = 0;

    while (s->command[command_count]) {
        command_count++;
    }
    char **arguments =
        calloc((size_t)(s->run_argument_count + command_count) + 9, sizeof *arguments);
    if (!arguments) {
        return NULL;
    }
    arguments[at++] = (char *)s->self;
    arguments[at++] = (char *)"run";
    for (int i = 0; i < s->run_argument_count; i++) {
        arguments[at++] = s->run_arguments[i];
    }
    arguments[at++] = (char *)"-qo";
    arguments[at++] = record;
    if (*list) {
        arguments[at++] = (char *)"--only-list";
        arguments[at++] = (char *)list;
    }
    arguments[at++] = (char *)"--";
    memcpy(arguments + at, s->command, (size_t)command_count * sizeof *arguments);
    return arguments;
}

static void redirect_fd(const char *path, int flags, int fd)
{
    int file = open(path, flags, 0600);

    if (file < 0 || dup2(file, fd) < 0) {
        _exit(125);
    }
    close(file);
}

static void become_trial(const bisect_setup *s, const char *list, const char *output)
{
    char record[PATH_MAX], input[PATH_MAX], errors[PATH_MAX];

    bisect_make_path(s, "record.hfr", record);
    bisect_make_path(s, "input", input);
    bisect_make_path(s, "errors", errors);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    sigprocmask(SIG_SETMASK, &old_mask, NULL);
    redirect_fd(isatty(STDIN_FILENO) ? "/dev/null" : input, O_RDONLY, STDIN_FILENO);
    redirect_fd(output, O_WRONLY | O_CREAT | O_TRUNC, STDOUT_FILENO);
    redirect_fd(errors, O_WRONLY | O_CREAT | O_TRUNC, STDERR_FILENO);
    char **arguments = list ? build_hooked_command(s, list, record) : s->command;
    if (!arguments) {
        _exit(125);
    }
    if (list) {
        execv(s->self, arguments);
    } else {
        execvp(arguments[0], arguments);
    }
    fprintf(stderr, "%s: %s\n", arguments[0], strerror(errno));
    _exit(errno == ENOENT ? 127 : 126);
}

/* ---- Waiting for the child. */

/* Kill all descendants of the process but not the process: `hotfn run` must still write its
 * record. */
static void kill_descendants(pid_t pid)
{
    char path[64];
    int child;

    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)pid, (int)pid);
    FILE *children = fopen(path, "re");
    while (children && fscanf(children, "%d", &child) == 1) {
        kill_descendants(child);
        kill(child, SIGKILL);
    }
    if (children) {
        fclose(children);
    }
}

/* False if the child still runs at the deadline, or if the user interrupts. */
static bool wait_until(bisect_setup *s, pid_t child, uint64_t deadline_ns, int *status)
{
    for (;;) {
        pid_t ended = waitpid(child, status, WNOHANG);
        if (ended == child || (ended < 0 && errno == ECHILD)) {
            return true;
        }
        uint64_t now = now_ns(), remaining = deadline_ns > now ? deadline_ns - now : 0;
        if (remaining == 0 || s->interrupted) {
            return false;
        }
        remaining = remaining < 1000000000u ? remaining : 1000000000u;
        struct timespec time = { (time_t)(remaining / 1000000000u),
                                 (long)(remaining % 1000000000u) };
        int arrived = sigtimedwait(&our_signals, NULL, &time);
        s->interrupted |= arrived == SIGINT || arrived == SIGTERM;
    }
}

static void end_trial(bisect_setup *s, pid_t child, int *status)
{
    bool interrupted = s->interrupted;

    s->interrupted = false; /* else wait_until would not give it time to finish its record */
    kill(child, SIGTERM);
    if (!wait_until(s, child, now_ns() + GRACE_NS, status)) {
        kill_descendants(child);
        if (!wait_until(s, child, now_ns() + GRACE_NS, status)) {
            kill(child, SIGKILL);
            waitpid(child, status, 0);
        }
    }
    s->interrupted |= interrupted;
}

bool bisect_trial(bisect_setup *s, const char *list, const char *label, bisect_outcome *out)
{
    char record[PATH_MAX];
    uint64_t begin = now_ns();

    bisect_make_path(s, label, out->output);
    bisect_make_path(s, "record.hfr", record);
    unlink(record);
    fflush(NULL);
    pid_t child = fork();
    if (child < 0) {
        return report_failure("cannot fork", s->command[0]);
    }
    if (child == 0) {
        become_trial(s, list, out->output);
    }
    out->hung =
        !wait_until(s, child, s->timeout_ns ? begin + s->timeout_ns : UINT64_MAX, &out->status);
    if (out->hung) {
        end_trial(s, child, &out->status);
    }
    out->time_ns = now_ns() - begin;
    if (s->interrupted) {
        return false;
    }
    bool run_failed = list && WIFEXITED(out->status) && WEXITSTATUS(out->status) >= 125;
    return run_failed && access(record, F_OK) != 0 ? bisect_print_errors(s) : true;
}

/* ---- The check. */

/* Run the --check command: its stdin is the trial's stdout, and $STATUS is the trial's status as a
 * shell or timeout(1) reports it. */
bool bisect_check_fails(const bisect_setup *s, const bisect_outcome *o)
{
    char status[16];
    int check_status = -1;

    snprintf(status, sizeof status, "%d",
             o->hung                  ? 124
             : WIFSIGNALED(o->status) ? 128 + WTERMSIG(o->status)
                                      : WEXITSTATUS(o->status));
    pid_t child = fork();
    if (child == 0) {
        sigprocmask(SIG_SETMASK, &old_mask, NULL);
        redirect_fd(o->output, O_RDONLY, STDIN_FILENO);
        redirect_fd("/dev/null", O_WRONLY, STDOUT_FILENO);
        setenv("STATUS", status, 1);
        execl("/bin/sh", "sh", "-c", s->check, (char *)NULL);
        _exit(127);
    }
    return child < 0 || waitpid(child, &check_status, 0) != child || check_status != 0;
}

void bisect_format_outcome(const bisect_outcome *o, char *text, size_t text_bytes)
{
    if (o->hung) {
        snprintf(text, text_bytes, "no end within %.1f s", (double)o->time_ns / 1e9);
    } else if (WIFSIGNALED(o->status)) {
        snprintf(text, text_bytes, "signal %d", WTERMSIG(o->status));
    } else {
        snprintf(text, text_bytes, "exit status %d", WEXITSTATUS(o->status));
    }
}
