/* SPDX-License-Identifier: MIT */
/* The agent's replacements for exit, exec and posix_spawn.  Before the process exits or calls exec,
 * its patches are compared with memory.  A program that exec starts is followed; a spawned child is
 * reported to the launcher.  A process that ends by a signal, quick_exit or a system call is not
 * checked, which the record reports. */
#include "agent/agent.h"
#include "counters/thread_row.h"
#include "os/os.h"
#include "session/joined.h"
#include "session/session.h"

#include <dlfcn.h>
#include <spawn.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

typedef int (*exec_fn)(const char *file, char *const argv[], char *const envp[]);
typedef int (*fexec_fn)(int fd, char *const argv[], char *const envp[]);
typedef int (*execveat_fn)(int folder, const char *file, char *const argv[], char *const envp[],
                           int flags);
typedef int (*spawn_fn)(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
                        const posix_spawnattr_t *attributes, char *const argv[],
                        char *const envp[]);

static exec_fn next_execve, next_execvpe;
static fexec_fn next_fexecve;
static execveat_fn next_execveat;
static spawn_fn next_spawn, next_spawnp;
static void (*next_exit)(int status) __attribute__((noreturn));

/* A constructor calls dlsym, because a signal handler that calls exec must not. */
__attribute__((constructor(101))) static void find_next_definitions(void)
{
    void *found = dlsym(RTLD_NEXT, "execve");
    memcpy(&next_execve, &found, sizeof found); /* ISO C has no cast from void * to a function */
    found = dlsym(RTLD_NEXT, "execvpe");
    memcpy(&next_execvpe, &found, sizeof found);
    found = dlsym(RTLD_NEXT, "fexecve");
    memcpy(&next_fexecve, &found, sizeof found);
    found = dlsym(RTLD_NEXT, "execveat");
    memcpy(&next_execveat, &found, sizeof found);
    found = dlsym(RTLD_NEXT, "posix_spawn");
    memcpy(&next_spawn, &found, sizeof found);
    found = dlsym(RTLD_NEXT, "posix_spawnp");
    memcpy(&next_spawnp, &found, sizeof found);
    found = dlsym(RTLD_NEXT, "_exit");
    memcpy(&next_exit, &found, sizeof found);
}

/* Because of -z initfirst it runs after all other destructors. */
__attribute__((destructor)) static void verify_at_exit(void)
{
    hfn_session_verify();
}

EXPORT void _exit(int status)
{
    verify_at_exit();
    next_exit(status);
}

EXPORT void _Exit(int status) __attribute__((alias("_exit")));

/* What must be undone if exec fails. */
typedef struct exec_report {
    bool was_verified;
    uint32_t number; /* of the report to the launcher */
} exec_report;

static exec_report begin_exec(bool is_followed, const char *file)
{
    bool was_verified = hfn_session_begin_exec();
    uint32_t pid = hfn_rows_may_call(HFN_CALLS_FORK) ? hfn_os_get_process_id() : hfn_rows.pid;
    return (exec_report){ was_verified, hfn_session_report_exec(pid, file, is_followed) };
}

static void undo_exec(exec_report report)
{
    hfn_session_fail_exec(report.was_verified);
    hfn_session_report_exec_failed(report.number);
}

/* Replace envp by a copy with hotfn's settings if the new program is followed.  This is a macro
 * because the copy must be on the stack of the function that calls exec. */
#define FOLLOW(envp, bytes)                                                                        \
    size_t bytes = agent_get_exec_bytes(envp);                                                     \
    if (bytes > 0) {                                                                               \
        envp = agent_make_exec_environment(__builtin_alloca(bytes), bytes, envp);                  \
    }

static int call_exec(exec_fn exec, const char *file, char *const argv[], char *const envp[])
{
    FOLLOW(envp, bytes)
    exec_report report = begin_exec(bytes > 0, file);
    int result = exec(file, argv, envp);
    undo_exec(report);
    return result;
}

static const char *first_word(char *const argv[])
{
    return argv[0] ? argv[0] : "";
}

EXPORT int fexecve(int fd, char *const argv[], char *const envp[])
{
    FOLLOW(envp, bytes)
    exec_report report = begin_exec(bytes > 0, first_word(argv));
    int result = next_fexecve(fd, argv, envp);
    undo_exec(report);
    return result;
}

EXPORT int execveat(int folder, const char *file, char *const argv[], char *const envp[], int flags)
{
    FOLLOW(envp, bytes)
    exec_report report = begin_exec(bytes > 0, *file ? file : first_word(argv));
    int result = next_execveat(folder, file, argv, envp, flags);
    undo_exec(report);
    return result;
}

static int spawn_reported(spawn_fn spawn, pid_t *pid, const char *file,
                          const posix_spawn_file_actions_t *actions,
                          const posix_spawnattr_t *attributes, char *const argv[],
                          char *const envp[])
{
    pid_t started = 0;
    int result = spawn(&started, file, actions, attributes, argv, envp);
    if (result == 0) {
        hfn_session_report_exec((uint32_t)started, file, false);
        if (pid) {
            *pid = started;
        }
    }
    return result;
}

EXPORT int posix_spawn(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
                       const posix_spawnattr_t *attributes, char *const argv[], char *const envp[])
{
    return spawn_reported(next_spawn, pid, file, actions, attributes, argv, envp);
}

EXPORT int posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
                        const posix_spawnattr_t *attributes, char *const argv[], char *const envp[])
{
    return spawn_reported(next_spawnp, pid, file, actions, attributes, argv, envp);
}

#define DEFINE_EXEC(name, exec, envp, ...)                                                         \
    EXPORT int name(const char *file, __VA_ARGS__)                                                 \
    {                                                                                              \
        return call_exec(exec, file, argv, envp);                                                  \
    }
/* The list of arguments is copied to the stack, because exec may be called after vfork and in a
 * signal handler. */
#define DEFINE_EXEC_L(name, exec, environment)                                                     \
    EXPORT int name(const char *file, const char *first, ...)                                      \
    {                                                                                              \
        size_t count = 2;                                                                          \
        va_list list;                                                                              \
        for (va_start(list, first); va_arg(list, char *); count++) {                               \
        }                                                                                          \
        va_end(list);                                                                              \
        const char **argv = __builtin_alloca(count * sizeof *argv);                                \
        va_start(list, first);                                                                     \
        for (size_t i = 0; i < count; i++) {                                                       \
            argv[i] = i == 0 ? first : va_arg(list, char *);                                       \
        }                                                                                          \
        char *const *envp = environment;                                                           \
        va_end(list);                                                                              \
        return call_exec(exec, file, (char *const *)(uintptr_t)argv, envp);                        \
    }

DEFINE_EXEC(execve, next_execve, envp, char *const argv[], char *const envp[])
DEFINE_EXEC(execvpe, next_execvpe, envp, char *const argv[], char *const envp[])
DEFINE_EXEC(execv, next_execve, environ, char *const argv[])
DEFINE_EXEC(execvp, next_execvpe, environ, char *const argv[])
DEFINE_EXEC_L(execl, next_execve, environ)
DEFINE_EXEC_L(execlp, next_execvpe, environ)
DEFINE_EXEC_L(execle, next_execve, va_arg(list, char *const *))
