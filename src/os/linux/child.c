/* SPDX-License-Identifier: MIT */
/* Children: started by posix_spawn with the signals of this process, waited for without being
 * reaped, and sent the signals that this process receives. */
#include "os/child.h"

#include "base/memory.h"
#include "os/linux/parked.h"
#include "os/os.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- Signals. */

static const int passed_signals[] = { SIGINT, SIGQUIT, SIGTERM, SIGHUP };
enum {
    PASSED_SIGNALS = 4,
    IGNORED_SIGNALS = 2 /* the first ones: a terminal sends them to the child too */
};

static struct sigaction actions_before[PASSED_SIGNALS];
static atomic_bool are_passed;
static volatile sig_atomic_t receiver; /* the child's pid; 0: none */

static void pass_signal(int number)
{
    if (receiver > 0) {
        kill((pid_t)receiver, number);
    }
}

static void set_signal_actions(pid_t child)
{
    struct sigaction ignore = { .sa_handler = SIG_IGN };
    struct sigaction pass = { .sa_handler = pass_signal, .sa_flags = SA_RESTART };

    receiver = child;
    for (int i = 0; i < PASSED_SIGNALS; i++) {
        sigaction(passed_signals[i], i < IGNORED_SIGNALS ? &ignore : &pass, &actions_before[i]);
    }
}

void hfn_os_child_release_signals(hfn_os_child *child)
{
    if (!child->passes_signals) {
        return;
    }
    for (int i = 0; i < PASSED_SIGNALS; i++) {
        sigaction(passed_signals[i], &actions_before[i], NULL);
    }
    receiver = 0;
    child->passes_signals = false;
    atomic_store(&are_passed, false);
}

/* Signals 32 and 33 belong to glibc: its posix_spawn lets the child ignore them unless they are in
 * this set (glibc, sysdeps/unix/sysv/linux/spawni.c), and its sigaddset refuses them.  In the
 * kernel's set, signal n is bit n - 1. */
static sigset_t libc_signals(void)
{
    const uint64_t bits = UINT64_C(3) << 31;
    sigset_t set;

    sigemptyset(&set);
    memcpy(&set, &bits, sizeof bits);
    return set;
}

/* ---- Start. */

static bool is_replaced(const char *variable, const hfn_os_child_options *o)
{
    for (uint32_t i = 0; i < o->setting_count; i++) {
        size_t name = strcspn(o->settings[i], "=") + 1;
        if (strncmp(variable, o->settings[i], name) == 0) {
            return true;
        }
    }
    return false;
}

/* Fill in *capacity pointers: the environment of this process with the settings; the caller frees
 * them. */
static const char **make_environment(const hfn_os_child_options *o, size_t *capacity,
                                     const hotfn_env *env)
{
    size_t count = 0, used = 0;
    const char **variables;

    while (environ && environ[count]) {
        count++;
    }
    *capacity = count + o->setting_count + 1;
    variables = hfn_allocate_zeroed(env, *capacity * sizeof *variables);
    for (size_t i = 0; variables && i < count; i++) {
        if (!is_replaced(environ[i], o)) {
            variables[used++] = environ[i];
        }
    }
    for (uint32_t i = 0; variables && i < o->setting_count; i++) {
        variables[used++] = o->settings[i];
    }
    return variables;
}

/* posix_spawn copies no memory of this process, as fork would.  0 or an errno. */
static int spawn_child(pid_t *pid, const hfn_os_child_options *o, const char **environment,
                       const sigset_t *mask)
{
    posix_spawnattr_t attributes;
    sigset_t defaults = libc_signals();
    int error = posix_spawnattr_init(&attributes);

    if (error != 0) {
        return error;
    }
    posix_spawnattr_setsigmask(&attributes, mask);
    posix_spawnattr_setsigdefault(&attributes, &defaults);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    error = posix_spawn(pid, o->file, NULL, &attributes, (char *const *)(uintptr_t)o->command,
                        (char *const *)(uintptr_t)environment);
    posix_spawnattr_destroy(&attributes);
    return error;
}

/* The signals are blocked until they can be passed on: an early signal stays pending. */
static int spawn_with_signals(hfn_os_child *child, const hfn_os_child_options *o,
                              const char **environment)
{
    sigset_t blocked, before;
    pid_t pid = 0;

    sigemptyset(&blocked);
    for (int i = 0; o->passes_signals && i < PASSED_SIGNALS; i++) {
        sigaddset(&blocked, passed_signals[i]);
    }
    pthread_sigmask(SIG_BLOCK, &blocked, &before);
    int error = o->is_parked ? hfn_linux_spawn_traced(&pid, o, environment, &before)
                             : spawn_child(&pid, o, environment, &before);
    if (error == 0) {
        *child = (hfn_os_child){ .pid = (uint32_t)pid, .passes_signals = o->passes_signals };
        error = o->is_parked ? hfn_linux_park(child) : 0;
    }
    if (error == 0) {
        if (o->passes_signals) {
            set_signal_actions(pid);
        }
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

hfn_os_error hfn_os_child_start(hfn_os_child *child, const hfn_os_child_options *o,
                                const hotfn_env *env)
{
    size_t capacity;
    const char **environment;

    if (o->passes_signals && atomic_exchange(&are_passed, true)) {
        return EBUSY;
    }
    environment = make_environment(o, &capacity, env);
    int error = environment ? spawn_with_signals(child, o, environment) : ENOMEM;
    hfn_free_memory(env, environment, capacity * sizeof *environment);
    if (error != 0 && o->passes_signals) {
        atomic_store(&are_passed, false);
    }
    return error;
}

/* ---- The end. */

/* A budget's thread may hold the child by ptrace for a moment.  Such a stop is reported here too,
 * and is left to that thread. */
static bool has_ended(const hfn_os_child *child, int wait_flags)
{
    siginfo_t info = { 0 };

    if (waitid(P_PID, (id_t)child->pid, &info, WEXITED | WNOWAIT | wait_flags) != 0) {
        return errno != EINTR; /* ECHILD: it was reaped by others */
    }
    return info.si_pid != 0 && info.si_code != CLD_TRAPPED && info.si_code != CLD_STOPPED;
}

bool hfn_os_child_wait(const hfn_os_child *child, uint64_t timeout_ns)
{
    enum { FIRST_SLEEP_NS = 200000, MAX_SLEEP_NS = 5000000 };
    uint64_t begin_ns = hfn_os_monotonic_ns(), passed_ns = 0;
    bool has_limit = timeout_ns != UINT64_MAX;

    for (uint32_t sleep_ns = FIRST_SLEEP_NS; !has_ended(child, has_limit ? WNOHANG : 0);) {
        passed_ns = hfn_os_monotonic_ns() - begin_ns;
        if (has_limit && passed_ns >= timeout_ns) {
            return false;
        }
        if (has_limit && timeout_ns - passed_ns < sleep_ns) {
            sleep_ns = (uint32_t)(timeout_ns - passed_ns);
        }
        hfn_os_sleep(sleep_ns);
        if (has_limit && sleep_ns < MAX_SLEEP_NS) {
            sleep_ns *= 2;
        }
    }
    return true;
}

void hfn_os_child_reap(hfn_os_child *child)
{
    int status = 0;

    while (waitpid((pid_t)child->pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (child->passes_signals) {
        receiver = 0; /* the number may soon belong to another process */
    }
    child->exit_code = WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

void hfn_os_child_kill(hfn_os_child *child)
{
    kill((pid_t)child->pid, SIGKILL);
    hfn_os_child_reap(child);
}

/* ---- Other processes. */

bool hfn_os_process_maps_file(uint32_t pid, int fd)
{
    char line[4352], path[32];
    unsigned device[2];
    uint64_t inode;
    struct stat file;
    bool found = false;

    if (fstat(fd, &file) != 0) {
        return false;
    }
    snprintf(path, sizeof path, "/proc/%" PRIu32 "/maps", pid);
    FILE *maps = fopen(path, "re");
    while (maps && !found && fgets(line, sizeof line, maps)) {
        found =
            sscanf(line, "%*x-%*x %*s %*x %x:%x %" SCNu64, &device[0], &device[1], &inode) == 3 &&
            inode == (uint64_t)file.st_ino && makedev(device[0], device[1]) == file.st_dev;
    }
    if (maps) {
        fclose(maps);
    }
    return found;
}
