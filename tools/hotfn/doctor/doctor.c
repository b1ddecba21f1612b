/* SPDX-License-Identifier: MIT */
/* `hotfn doctor`: what this system allows.  doctor_try.c tries what can be tried; the rest is
 * read from /proc.  Each line is ok, a warning or a problem, with what to do.  A problem means that
 * counting cannot work here: then the exit status is 1. */
#include "doctor.h"
#include "cli/cli_options.h"
#include "cli/commands.h"
#include "cli/listing.h"

#include <gnu/libc-version.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#define ROOMY_BYTES (20ull << 30) /* a record reserves at most 16 GiB of addresses */

typedef struct check {
    const char *name;
    void (*look)(doctor_finding *f);
} check;

void doctor_say(doctor_finding *f, const char *format, ...)
{
    size_t used = strlen(f->text);
    va_list args;

    va_start(args, format);
    vsnprintf(f->text + used, sizeof f->text - used, format, args);
    va_end(args);
}

void doctor_worsen(doctor_finding *f, int level, const char *advice)
{
    if (level > f->level) {
        f->level = level;
        snprintf(f->advice, sizeof f->advice, "%s", advice);
    }
}

/* ---- Reading. */

/* The first line of a small file, without its newline; false if it cannot be read. */
static bool first_line(const char *path, char *line, int line_bytes)
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

/* What stands behind "key...:" in a file of such lines; false if there is no such line. */
static bool value_of(const char *path, const char *key, char *value, size_t value_bytes)
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

static void look_at_kernel(doctor_finding *f)
{
    struct utsname u;
    char model[128] = "unknown CPU";

    uname(&u);
    value_of("/proc/cpuinfo", "model name", model, sizeof model);
    doctor_say(f, "%s %s %s, %s, %ld online", u.sysname, u.release, u.machine, model,
               sysconf(_SC_NPROCESSORS_ONLN));
    if (strcmp(u.machine, "x86_64") != 0 && strcmp(u.machine, "aarch64") != 0) {
        doctor_worsen(f, DOCTOR_PROBLEM, "this version counts on x86-64 and ARM64 only");
    }
}

static void look_at_c_library(doctor_finding *f)
{
    doctor_say(f, "glibc %s", gnu_get_libc_version());
    if (getauxval(AT_SECURE)) {
        doctor_worsen(
            f, DOCTOR_PROBLEM,
            "this process runs with raised rights: the loader ignores LD_PRELOAD; run hotfn plainly");
    }
}

/* For debuggers; `hotfn run` traces nothing. */
static void look_at_ptrace(doctor_finding *f)
{
    static const char *const scopes[] = { "any process of the same user", "descendants only",
                                          "by administrators only", "nothing" };
    char line[32] = "0";

    first_line("/proc/sys/kernel/yama/ptrace_scope", line, sizeof line);
    unsigned long scope = strtoul(line, NULL, 10);
    doctor_say(f, "scope %lu: %s may be traced; run needs none of it", scope,
               scopes[scope < 3 ? scope : 3]);
}

/* IBT makes the CPU refuse an indirect jump to anything but ENDBR; a shadow stack refuses a
 * return address that was replaced.  Count mode keeps both rules. */
static void look_at_cet(doctor_finding *f)
{
    char flags[8192] = "", features[128] = "";

    value_of("/proc/cpuinfo", "flags", flags, sizeof flags);
    value_of("/proc/self/status", "x86_Thread_features:", features, sizeof features);
    doctor_say(f, "CPU: IBT %s, shadow stack %s; in this process: %s",
               has_word(flags, "ibt") ? "yes" : "no", has_word(flags, "user_shstk") ? "yes" : "no",
               features[0] ? features : "off");
}

static void look_at_seccomp(doctor_finding *f)
{
    char mode[16] = "0", enforcing[16] = "0";

    value_of("/proc/self/status", "Seccomp:", mode, sizeof mode);
    first_line("/sys/fs/selinux/enforce", enforcing, sizeof enforcing);
    doctor_say(f, "seccomp %s, SELinux %s", mode[0] == '0' ? "off" : "on (a sandbox or container)",
               enforcing[0] == '1' ? "enforcing" : "not enforcing");
}

/* ---- Limits. */

/* The smallest memory.max (or memory.limit_in_bytes) from the process's group up to the root; "" if
 * there is none. */
static void cgroup_limit(char *limit, size_t limit_bytes)
{
    char group[PATH_MAX] = "", path[PATH_MAX + 64], line[64];

    limit[0] = 0;
    if (!value_of("/proc/self/cgroup", "0:", group, sizeof group)) {
        return;
    }
    /* "0::/path": value_of leaves ":/path". */
    for (char *end = group + strlen(group); end > group; *end = 0) {
        snprintf(path, sizeof path, "/sys/fs/cgroup%s/memory.max", group + (group[0] == ':'));
        if (first_line(path, line, sizeof line) && strcmp(line, "max") != 0) {
            snprintf(limit, limit_bytes, "%s", line);
        }
        end = strrchr(group, '/');
        if (!end) {
            return;
        }
    }
}

static void look_at_memory(doctor_finding *f)
{
    struct rlimit address_space;
    char overcommit[16] = "0", group[64];

    getrlimit(RLIMIT_AS, &address_space);
    first_line("/proc/sys/vm/overcommit_memory", overcommit, sizeof overcommit);
    cgroup_limit(group, sizeof group);
    if (address_space.rlim_cur == RLIM_INFINITY) {
        doctor_say(f, "address space unlimited");
    } else {
        doctor_say(f, "address space limited to %llu MiB",
                   (unsigned long long)address_space.rlim_cur >> 20);
    }
    doctor_say(f, ", overcommit %s, control group %s", overcommit, group[0] ? group : "unlimited");
    if (address_space.rlim_cur < ROOMY_BYTES) {
        doctor_worsen(f, DOCTOR_WARNING,
                      "raise `ulimit -v`: rows of counters reserve addresses (not memory), "
                      "and the target has the same limit");
    }
    if (overcommit[0] == '2') {
        doctor_worsen(
            f, DOCTOR_WARNING,
            "vm.overcommit_memory=2 counts reserved addresses as memory: large targets may fail");
    }
}

static void look_at_proc(doctor_finding *f)
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
    bool open_to_us = access(name, X_OK) == 0;
    doctor_say(f, "own folder %s, %s", open_to_us ? "open" : "closed",
               hidepid ? hidepid : "not mounted");
    if (!open_to_us) {
        doctor_worsen(f, DOCTOR_PROBLEM, "mount /proc: the target finds the record through it");
    }
}

/* ---- Our own parts. */

static void look_at_agent(doctor_finding *f)
{
    char path[PATH_MAX], real[PATH_MAX];

    hotfn_error err = HOTFN_ERROR_INIT;

    if (hotfn_launch_find_agent(path, sizeof path, HOTFN_MACHINE_OTHER, &err) != HOTFN_OK) {
        doctor_say(f, "%s", err.text);
        doctor_worsen(f, DOCTOR_PROBLEM, "install libhotfn whole (meson install)");
        return;
    }
    doctor_say(f, "%s", realpath(path, real) ? real : path);
    if (strpbrk(path, " :")) {
        doctor_worsen(f, DOCTOR_PROBLEM,
                      "the loader takes no path with a space or colon: install it elsewhere");
    }
}

static void look_at_preload(doctor_finding *f)
{
    const char *set = getenv("LD_PRELOAD");

    doctor_say(f, "%s", set && *set ? set : "not set");
    if (set && *set) {
        doctor_worsen(f, DOCTOR_WARNING,
                      "it is kept, the agent goes first; if the target misbehaves, try without");
    }
}

static void look_at_folder(doctor_finding *f, const char *folder, const char *advice)
{
    char path[PATH_MAX], *slash;

    snprintf(path, sizeof path, "%s", folder);
    /* What does not exist yet is made: look at what is above it. */
    while (access(path, F_OK) != 0 && (slash = strrchr(path, '/')) && slash != path) {
        *slash = 0;
    }
    bool writable = access(path, W_OK | X_OK) == 0;
    doctor_say(f, "%s %s", folder, writable ? "writable" : "not writable");
    if (!writable) {
        doctor_worsen(f, DOCTOR_WARNING, advice);
    }
}

static void look_at_cache(doctor_finding *f)
{
    const char *base = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    bool own = base && base[0] == '/';
    char folder[PATH_MAX];

    snprintf(folder, sizeof folder, "%s/%s",
             own    ? base
             : home ? home
                    : "",
             own ? "hotfn" : ".cache/hotfn");
    look_at_folder(f, folder,
                   "make it writable: scans are kept there, and the second start is quicker");
}

static void look_at_perf_map(doctor_finding *f)
{
    look_at_folder(f, "/tmp",
                   "`hotfn run --perf-map` writes perf-PID.map there; perf then has no names");
}

/* ---- All of it. */

static const check checks[] = {
    { "system", look_at_kernel },
    { "c-library", look_at_c_library },
    { "text", doctor_try_text },
    { "new-code", doctor_try_new_code },
    { "cet", look_at_cet },
    { "sandbox", look_at_seccomp },
    { "ptrace", look_at_ptrace },
    { "memory", look_at_memory },
    { "shared-memory", doctor_try_shared_memory },
    { "membarrier", doctor_try_membarrier },
    { "proc", look_at_proc },
    { "agent", look_at_agent },
    { "preload", look_at_preload },
    { "cache", look_at_cache },
    { "perf-map", look_at_perf_map },
    { "32-bit", doctor_try_exec32 },
    { "proof", doctor_try_proof },
};
#define CHECK_COUNT (sizeof checks / sizeof checks[0])

static const char *const level_names[] = { "ok", "warning", "problem" };

static void print_text(const doctor_finding *f)
{
    printf("%-8s %-14s %s\n", level_names[f->level], f->name, f->text);
    if (f->advice[0]) {
        printf("%-8s %-14s -> %s\n", "", "", f->advice);
    }
}

static void print_json(const doctor_finding *found, int worst)
{
    hotfn_json_writer *out = json_open(stdout);
    hotfn_json_begin_object(out, NULL);
    json_write_text(out, "schema", "hotfn.doctor/1");
    json_write_text(out, "version", hotfn_get_version());
    json_write_bool(out, "can_count", worst < DOCTOR_PROBLEM);
    hotfn_json_begin_array(out, "checks");
    for (size_t i = 0; i < CHECK_COUNT; i++) {
        hotfn_json *o = hotfn_json_create_object();
        json_add_text(o, "name", found[i].name);
        json_add_text(o, "state", level_names[found[i].level]);
        json_add_text(o, "text", found[i].text);
        json_add_text(o, "advice", found[i].advice[0] ? found[i].advice : NULL);
        hotfn_json_write(out, NULL, o);
    }
    hotfn_json_end(out);
    hotfn_json_end(out);
    json_close(out);
}

static const char usage[] =
    "usage: hotfn doctor [--json]\n"
    "Says what this system allows, and what to do where counting cannot work (status 1).\n";

static const char *take_option(void *user, int word, const char *argument)
{
    (void)word, (void)argument;
    *(bool *)user = true;
    return NULL;
}

int hotfn_command_doctor(int argc, char **argv)
{
    static const struct option table[] = { { "json", no_argument, NULL, 'j' }, WORDS_END };
    doctor_finding found[CHECK_COUNT];
    bool json = false;
    const words w = { usage, "", table, take_option, &json, 0, 0 };
    int worst = DOCTOR_OK, status = words_read(&w, argc, argv);

    if (status >= 0) {
        return status;
    }
    for (size_t i = 0; i < CHECK_COUNT; i++) {
        found[i] = (doctor_finding){ .name = checks[i].name };
        checks[i].look(&found[i]);
        worst = found[i].level > worst ? found[i].level : worst;
        if (!json) {
            print_text(&found[i]);
        }
    }
    if (json) {
        print_json(found, worst);
    } else {
        printf("%s\n",
               worst < DOCTOR_PROBLEM ? "Counting works here." : "Counting cannot work here.");
    }
    return worst < DOCTOR_PROBLEM ? TOOL_OK : TOOL_FAILED;
}
