/* SPDX-License-Identifier: MIT */
/* The checks of `hotfn doctor` on Linux.  doctor_try.c makes those that can be tried out; those in
 * this file read /proc and the environment. */
#include "cli/commands.h"
#include "doctor.h"

#include <gnu/libc-version.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#define MIN_ADDRESS_SPACE (20ull << 30) /* with less, a record has room for few threads */

/* ---- Reading files of /proc. */

/* Read the first line of a small file, without its newline; false if it cannot be read. */
static bool read_first_line(const char *path, char *line, int line_bytes)
{
    FILE *file = fopen(path, "re");
    bool good = file && fgets(line, line_bytes, file);

    if (file) {
        fclose(file);
    }
    if (good) {
        line[strcspn(line, "\n")] = 0;
    }
    return good;
}

/* Read the value of the first "key...: value" line of a file; false if there is no such line. */
static bool read_value(const char *path, const char *key, char *value, size_t value_bytes)
{
    char *line = NULL;
    size_t line_bytes = 0;
    bool found = false;
    FILE *file = fopen(path, "re");

    while (file && !found && getline(&line, &line_bytes, file) > 0) {
        char *colon = strchr(line, ':');
        if (!colon || strncmp(line, key, strlen(key)) != 0) {
            continue;
        }
        colon += 1 + strspn(colon + 1, " \t");
        colon[strcspn(colon, "\n")] = 0;
        snprintf(value, value_bytes, "%s", colon);
        found = true;
    }
    free(line);
    if (file) {
        fclose(file);
    }
    return found;
}

static bool has_word(const char *text, const char *word)
{
    size_t length = strlen(word);

    for (const char *at = strstr(text, word); at; at = strstr(at + 1, word)) {
        if ((at == text || at[-1] == ' ') && (at[length] == ' ' || at[length] == 0)) {
            return true;
        }
    }
    return false;
}

/* ---- The system. */

static void check_kernel(doctor_finding *f)
{
    struct utsname u;
    char model[128] = "unknown CPU";

    uname(&u);
    read_value("/proc/cpuinfo", "model name", model, sizeof model);
    doctor_add_text(f, "%s %s %s, %s, %ld online", u.sysname, u.release, u.machine, model,
                    sysconf(_SC_NPROCESSORS_ONLN));
    if (strcmp(u.machine, "x86_64") != 0 && strcmp(u.machine, "aarch64") != 0) {
        doctor_raise_level(f, DOCTOR_PROBLEM, "this version counts on x86-64 and ARM64 only");
    }
}

static void check_c_library(doctor_finding *f)
{
    doctor_add_text(f, "glibc %s", gnu_get_libc_version());
    if (getauxval(AT_SECURE)) {
        doctor_raise_level(
            f, DOCTOR_PROBLEM,
            "the loader ignores LD_PRELOAD in a process with raised rights (setuid, capabilities): "
            "run hotfn without them");
    }
}

/* Information for users of debuggers: `hotfn run` works without ptrace. */
static void check_ptrace(doctor_finding *f)
{
    static const char *const scopes[] = { "any process of the same user may be traced",
                                          "only descendants may be traced",
                                          "only administrators may trace",
                                          "nothing may be traced" };
    char line[32] = "0";

    read_first_line("/proc/sys/kernel/yama/ptrace_scope", line, sizeof line);
    unsigned long scope = strtoul(line, NULL, 10);
    doctor_add_text(f, "scope %lu: %s; hotfn run does not need ptrace", scope,
                    scopes[scope < 3 ? scope : 3]);
}

/* With IBT the CPU faults on an indirect jump to anything but ENDBR; with a shadow stack it faults
 * on a return address that was replaced.  Count mode complies with both. */
static void check_cet(doctor_finding *f)
{
    char flags[8192] = "", features[128] = "";

    read_value("/proc/cpuinfo", "flags", flags, sizeof flags);
    read_value("/proc/self/status", "x86_Thread_features:", features, sizeof features);
    doctor_add_text(f, "CPU: IBT %s, shadow stack %s; in this process: %s",
                    has_word(flags, "ibt") ? "yes" : "no",
                    has_word(flags, "user_shstk") ? "yes" : "no", features[0] ? features : "off");
}

static void check_seccomp(doctor_finding *f)
{
    char mode[16] = "0", enforcing[16] = "0";

    read_value("/proc/self/status", "Seccomp:", mode, sizeof mode);
    read_first_line("/sys/fs/selinux/enforce", enforcing, sizeof enforcing);
    doctor_add_text(f, "seccomp %s, SELinux %s",
                    mode[0] == '0' ? "off" : "on (a sandbox or container)",
                    enforcing[0] == '1' ? "enforcing" : "not enforcing");
}

/* ---- Limits. */

/* The memory.max of the outermost control group that has a limit, among the process's own group and
 * those above it; "" if none has one. */
static void read_cgroup_limit(char *limit, size_t limit_bytes)
{
    char group[PATH_MAX] = "", path[PATH_MAX + 64], line[64];

    limit[0] = 0;
    if (!read_value("/proc/self/cgroup", "0:", group, sizeof group)) {
        return;
    }
    /* The line is "0::/path", of which read_value returns ":/path". */
    for (char *end = group + strlen(group); end > group; *end = 0) {
        snprintf(path, sizeof path, "/sys/fs/cgroup%s/memory.max", group + (group[0] == ':'));
        if (read_first_line(path, line, sizeof line) && strcmp(line, "max") != 0) {
            snprintf(limit, limit_bytes, "%s", line);
        }
        end = strrchr(group, '/');
        if (!end) {
            return;
        }
    }
}

static void check_memory(doctor_finding *f)
{
    struct rlimit address_space;
    char overcommit[16] = "0", group[64];

    getrlimit(RLIMIT_AS, &address_space);
    read_first_line("/proc/sys/vm/overcommit_memory", overcommit, sizeof overcommit);
    read_cgroup_limit(group, sizeof group);
    if (address_space.rlim_cur == RLIM_INFINITY) {
        doctor_add_text(f, "address space unlimited");
    } else {
        doctor_add_text(f, "address space limited to %llu MiB",
                        (unsigned long long)address_space.rlim_cur >> 20);
    }
    doctor_add_text(f, ", overcommit %s, control group %s", overcommit,
                    group[0] ? group : "unlimited");
    if (address_space.rlim_cur < MIN_ADDRESS_SPACE) {
        doctor_raise_level(
            f, DOCTOR_WARNING,
            "raise `ulimit -v`: counters reserve many addresses (not memory), and the "
            "target inherits this limit");
    }
    if (overcommit[0] == '2') {
        doctor_raise_level(
            f, DOCTOR_WARNING,
            "large targets may fail: vm.overcommit_memory=2 counts reserved addresses as memory");
    }
}

static void check_proc(doctor_finding *f)
{
    char line[1024], name[64];
    const char *hidepid = NULL;
    FILE *mounts = fopen("/proc/self/mounts", "re");

    while (mounts && fgets(line, sizeof line, mounts)) {
        if (strncmp(line, "proc /proc ", 11) == 0 && !hidepid) {
            hidepid = strstr(line, "hidepid=") ? "hidepid set" : "hidepid not set";
        }
    }
    if (mounts) {
        fclose(mounts);
    }
    snprintf(name, sizeof name, "/proc/%d/fd", (int)getpid());
    bool is_open = access(name, X_OK) == 0;
    doctor_add_text(f, "/proc/PID/fd of this process %s, %s", is_open ? "open" : "closed",
                    hidepid ? hidepid : "/proc not mounted");
    if (!is_open) {
        doctor_raise_level(f, DOCTOR_PROBLEM,
                           "mount /proc: the target finds the record through it");
    }
}

/* ---- The installation and the environment. */

static void check_agent(doctor_finding *f)
{
    char path[PATH_MAX], real[PATH_MAX];

    hotfn_error err = HOTFN_ERROR_INIT;

    if (hotfn_launch_find_agent(path, sizeof path, HOTFN_MACHINE_OTHER, &err) != HOTFN_OK) {
        doctor_add_text(f, "%s", err.text);
        doctor_raise_level(f, DOCTOR_PROBLEM, "install all of libhotfn (meson install)");
        return;
    }
    doctor_add_text(f, "%s", realpath(path, real) ? real : path);
    if (strpbrk(path, " :")) {
        doctor_raise_level(
            f, DOCTOR_PROBLEM,
            "LD_PRELOAD cannot hold a path with a space or colon: install hotfn elsewhere");
    }
}

static void check_preload(doctor_finding *f)
{
    const char *set = getenv("LD_PRELOAD");

    doctor_add_text(f, "%s", set && *set ? set : "not set");
    if (set && *set) {
        doctor_raise_level(
            f, DOCTOR_WARNING,
            "hotfn keeps it and puts its agent in front; if the target misbehaves, unset it");
    }
}

static void check_folder(doctor_finding *f, const char *folder, const char *advice)
{
    char path[PATH_MAX], *slash;

    snprintf(path, sizeof path, "%s", folder);
    /* A missing folder is created on demand, so check its nearest existing parent. */
    while (access(path, F_OK) != 0 && (slash = strrchr(path, '/')) && slash != path) {
        *slash = 0;
    }
    bool writable = access(path, W_OK | X_OK) == 0;
    doctor_add_text(f, "%s %s", folder, writable ? "writable" : "not writable");
    if (!writable) {
        doctor_raise_level(f, DOCTOR_WARNING, advice);
    }
}

static void check_cache(doctor_finding *f)
{
    const char *base = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    bool own = base && base[0] == '/';
    char folder[PATH_MAX];

    snprintf(folder, sizeof folder, "%s/%s",
             own    ? base
             : home ? home
                    : "",
             own ? "hotfn" : ".cache/hotfn");
    check_folder(f, folder,
                 "make it writable: hotfn keeps scans there, which makes later starts faster");
}

static void check_perf_map(doctor_finding *f)
{
    check_folder(f, "/tmp",
                 "make it writable if you use `hotfn run --perf-map`: perf reads "
                 "/tmp/perf-PID.map");
}

const doctor_check doctor_checks[] = {
    { "system", check_kernel },
    { "c-library", check_c_library },
    { "text", doctor_try_text },
    { "new-code", doctor_try_new_code },
    { "cet", check_cet },
    { "sandbox", check_seccomp },
    { "ptrace", check_ptrace },
    { "memory", check_memory },
    { "shared-memory", doctor_try_shared_memory },
    { "membarrier", doctor_try_membarrier },
    { "proc", check_proc },
    { "clock", doctor_check_clock },
    { "agent", check_agent },
    { "preload", check_preload },
    { "cache", check_cache },
    { "perf-map", check_perf_map },
    { "32-bit", doctor_try_exec32 },
    { "proof", doctor_try_proof },
    { NULL, NULL },
};
