/* SPDX-License-Identifier: MIT */
/* Compare the patches with memory before the process exits or calls exec, in the agent only.  The
 * record reports a process that ends in another way: by a signal, quick_exit or a system call. */
#include "session/session.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

typedef int (*exec_fn)(const char *file, char *const argv[], char *const envp[]);

static exec_fn next_execve, next_execvpe;
static void (*next_exit)(int status) __attribute__((noreturn));

/* Runs before any of the calls, which may be made in a signal handler. */
__attribute__((constructor(101))) static void find_next(void)
{
    void *found = dlsym(RTLD_NEXT, "execve");
    memcpy(&next_execve, &found, sizeof found); /* ISO C has no cast from void * to a function */
    found = dlsym(RTLD_NEXT, "execvpe");
    memcpy(&next_execvpe, &found, sizeof found);
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

static int call_exec(exec_fn exec, const char *file, char *const argv[], char *const envp[])
{
    bool was_verified = hfn_session_verify();
    int answer = exec(file, argv, envp);
    if (was_verified) {
        hfn_session_revoke_verified();
    }
    return answer;
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
