/* SPDX-License-Identifier: MIT */
/*
 * A child whose program stands at its entry point until it is let go.  It is traced only until it
 * gets there:
 *
 *   vfork, PTRACE_TRACEME, exec  ->  stop by the exec
 *   int3 at the entry point      ->  stop there, the dynamic linker has loaded the libraries
 *   jmp to itself there, PTRACE_DETACH: the process runs and gets no further
 *   hfn_os_child_unpark: the original bytes, while its threads stand
 */
#include "os/linux/parked.h"

#include "os/linux/signal_frames.h"

#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__x86_64__)

enum { SIGNALS = 64, TRAP = 0xcc };
static const uint8_t loop[HFN_OS_PARKED_BYTES] = { 0xeb, 0xfe };

/* ---- Starting. */

typedef struct start {
    const hfn_os_child_options *options;
    const char **environment;
    const sigset_t *mask;
    int error; /* of the exec */
} start;

/* The child shares the memory of this process until its exec, so no handler may run in it; exec
 * itself resets handlers, but not signals that are ignored.  glibc refuses signals 32 and 33. */
static void reset_handlers(void)
{
    for (long number = 1; number <= SIGNALS; number++) {
        hfn_kernel_action action;
        if (syscall(SYS_rt_sigaction, number, NULL, &action, sizeof action.mask) != 0) {
            continue;
        }
        if (number == 32 || number == 33 || (uintptr_t)action.handler != (uintptr_t)SIG_IGN) {
            memset(&action, 0, sizeof action);
            syscall(SYS_rt_sigaction, number, &action, NULL, sizeof action.mask);
        }
    }
}

__attribute__((noinline, noreturn)) static void run_child(start *s)
{
    reset_handlers();
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0) {
        sigprocmask(SIG_SETMASK, s->mask, NULL);
        execve(s->options->file, (char *const *)(uintptr_t)s->options->command,
               (char *const *)(uintptr_t)s->environment);
    }
    s->error = errno;
    _exit(127);
}

int hfn_linux_spawn_traced(pid_t *pid, const hfn_os_child_options *options,
                           const char **environment, const sigset_t *mask)
{
    start s = { options, environment, mask, 0 };
    sigset_t all, before;

    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before);
    *pid = vfork();
    if (*pid == 0) {
        run_child(&s);
    }
    if (*pid < 0) {
        s.error = errno;
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (s.error != 0 && *pid > 0) {
        waitpid(*pid, NULL, 0);
    }
    return s.error;
}

/* ---- The way to the entry point. */

static uint64_t read_entry(pid_t pid)
{
    char path[32];
    Elf64_auxv_t item;
    uint64_t entry = 0;
    FILE *file;

    snprintf(path, sizeof path, "/proc/%d/auxv", (int)pid);
    file = fopen(path, "re");
    while (file && fread(&item, sizeof item, 1, file) == 1) {
        entry = item.a_type == AT_ENTRY ? item.a_un.a_val : entry;
    }
    if (file) {
        fclose(file);
    }
    return entry;
}

/* Replace the first `count` bytes of the word at `at`, and store those that were there. */
static bool write_code(pid_t pid, uint64_t at, const uint8_t *bytes, size_t count, uint8_t *old)
{
    long word;

    errno = 0;
    word = ptrace(PTRACE_PEEKTEXT, pid, (void *)(uintptr_t)at, NULL);
    if (errno != 0) {
        return false;
    }
    if (old) {
        memcpy(old, &word, count);
    }
    memcpy(&word, bytes, count);
    return ptrace(PTRACE_POKETEXT, pid, (void *)(uintptr_t)at, (void *)(uintptr_t)word) == 0;
}

/* Let the child run to the int3.  Its signals are delivered. */
static bool reach_trap(pid_t pid, uint64_t entry)
{
    struct user_regs_struct registers;
    int status, number = 0;

    for (;;) {
        if (ptrace(PTRACE_CONT, pid, NULL, (void *)(intptr_t)number) != 0) {
            return false;
        }
        while (waitpid(pid, &status, 0) < 0) {
            if (errno != EINTR) {
                return false;
            }
        }
        if (!WIFSTOPPED(status) || ptrace(PTRACE_GETREGS, pid, NULL, &registers) != 0) {
            return false;
        }
        number = WSTOPSIG(status);
        if (number == SIGTRAP && registers.rip == entry + 1) {
            registers.rip = entry;
            return ptrace(PTRACE_SETREGS, pid, NULL, &registers) == 0;
        }
    }
}

static bool run_to_entry(pid_t pid, uint64_t entry)
{
    static const uint8_t trap = TRAP;
    struct user_regs_struct registers;
    uint8_t original;

    if (ptrace(PTRACE_GETREGS, pid, NULL, &registers) != 0) {
        return false;
    }
    return registers.rip == entry ||
           (write_code(pid, entry, &trap, 1, &original) && reach_trap(pid, entry) &&
            write_code(pid, entry, &original, 1, NULL));
}

hfn_os_error hfn_linux_park(hfn_os_child *child)
{
    pid_t pid = (pid_t)child->pid;
    int status = 0;

    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (!WIFSTOPPED(status)) {
        return ECHILD;
    }
    ptrace(PTRACE_SETOPTIONS, pid, NULL, (void *)PTRACE_O_EXITKILL);
    child->entry = read_entry(pid);
    if (child->entry == 0 || !run_to_entry(pid, child->entry) ||
        !write_code(pid, child->entry, loop, sizeof loop, child->entry_code) ||
        ptrace(PTRACE_DETACH, pid, NULL, NULL) != 0) {
        kill(pid, SIGKILL);
        waitpid(pid, &status, 0);
        return ECHILD;
    }
    return 0;
}

#else

int hfn_linux_spawn_traced(pid_t *pid, const hfn_os_child_options *options,
                           const char **environment, const sigset_t *mask)
{
    (void)pid, (void)options, (void)environment, (void)mask;
    return ENOSYS;
}

hfn_os_error hfn_linux_park(hfn_os_child *child)
{
    (void)child;
    return ENOSYS;
}

#endif
