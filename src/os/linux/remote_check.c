/* SPDX-License-Identifier: MIT */
/* Whether a process can be entered: a table of conditions, read from what /proc reports about it;
 * nothing in the process is touched.  The kernel alone decides about the permission; if it denies
 * access, the conditions on user, ptrace_scope, capabilities and namespaces find the cause. */
#include "os/linux/remote_parts.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* proc(5): /proc/PID/status */
typedef struct process_facts {
    char state;
    uint32_t tracer, uid, seccomp, locked_kib;
    uint32_t pid_levels; /* PID namespaces in which it has a number */
    uint64_t permitted;  /* capabilities */
} process_facts;

typedef struct check {
    uint32_t pid;
    process_facts facts, own;
    bool is_gone;               /* it has ended since its facts were read */
    bool is_denied;             /* the kernel denies access to its memory */
    bool is_explained;          /* a condition has found the cause */
    int ptrace_scope;           /* -1: not built in */
    hfn_remote_verdict refusal; /* of the current condition, if it does not hold */
    char text[384];
} check;

/* Write the condition's sentence, and return whether it holds. */
static bool set_result(check *c, bool holds, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static bool set_result(check *c, bool holds, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(c->text, sizeof c->text, format, args);
    va_end(args);
    return holds;
}

/* ---- What /proc reports. */

static uint32_t count_numbers(const char *text)
{
    uint32_t count = 0;

    for (text += strcspn(text, "0123456789"); *text; text += strcspn(text, "0123456789")) {
        count++;
        text += strspn(text, "0123456789");
    }
    return count;
}

static bool read_facts(uint32_t pid, process_facts *out)
{
    char path[HFN_PROC_PATH_BYTES], line[512];
    unsigned long long permitted = 0;
    FILE *status;

    snprintf(path, sizeof path, "/proc/%u/status", pid);
    status = fopen(path, "re");
    if (!status) {
        return false;
    }
    *out = (process_facts){ 0 };
    while (fgets(line, sizeof line, status)) {
        if (sscanf(line, "State: %c", &out->state) == 1 ||
            sscanf(line, "TracerPid: %u", &out->tracer) == 1 ||
            sscanf(line, "Uid: %*u %u", &out->uid) == 1 ||
            sscanf(line, "Seccomp: %u", &out->seccomp) == 1 ||
            sscanf(line, "VmLck: %u", &out->locked_kib) == 1 ||
            sscanf(line, "CapPrm: %llx", &permitted) == 1) {
            continue;
        }
        if (strncmp(line, "NSpid:", 6) == 0) {
            out->pid_levels = count_numbers(line);
        }
    }
    fclose(status);
    out->permitted = permitted;
    return out->state != 0;
}

/* The whole of a small file; false if it cannot be read. */
static bool read_text(const char *path, char *out, size_t bytes)
{
    FILE *file = fopen(path, "re");
    size_t count = file ? fread(out, 1, bytes - 1, file) : 0;

    out[count] = 0;
    if (file) {
        fclose(file);
    }
    return file != NULL;
}

static void read_name(uint32_t pid, char *out, size_t bytes)
{
    char path[HFN_PROC_PATH_BYTES];
    FILE *comm;

    snprintf(path, sizeof path, "/proc/%u/comm", pid);
    snprintf(out, bytes, "?");
    comm = fopen(path, "re");
    if (comm && fgets(out, (int)bytes, comm)) {
        out[strcspn(out, "\n")] = 0;
    }
    if (comm) {
        fclose(comm);
    }
}

/* kernel/yama: 0 any process of the user, 1 descendants only, 2 administrators only, 3 none.
 * -1: not built in. */
static int read_ptrace_scope(void)
{
    FILE *file = fopen("/proc/sys/kernel/yama/ptrace_scope", "re");
    int scope = -1;

    if (file) {
        if (fscanf(file, "%d", &scope) != 1) {
            scope = -1;
        }
        fclose(file);
    }
    return scope;
}

/* The links of /proc/PID/ns are readable only for users that may trace the process; the map of user
 * numbers is readable for all. */
static bool is_other_user_namespace(uint32_t pid)
{
    char path[HFN_PROC_PATH_BYTES], own[1024], other[1024];

    snprintf(path, sizeof path, "/proc/%u/uid_map", pid);
    return read_text("/proc/self/uid_map", own, sizeof own) &&
           read_text(path, other, sizeof other) && strcmp(own, other) != 0;
}

static bool is_other_mount_namespace(uint32_t pid)
{
    char path[HFN_PROC_PATH_BYTES], own[64] = "", other[64] = "";

    snprintf(path, sizeof path, "/proc/%u/ns/mnt", pid);
    return readlink("/proc/self/ns/mnt", own, sizeof own - 1) > 0 &&
           readlink(path, other, sizeof other - 1) > 0 && strcmp(own, other) != 0;
}

/* Opening the memory needs the permission that ptrace needs (ptrace(2), PTRACE_MODE_ATTACH).  A
 * thread of the kernel has none. */
static void try_memory(check *c)
{
    char path[HFN_PROC_PATH_BYTES];
    int fd;

    snprintf(path, sizeof path, "/proc/%u/mem", c->pid);
    fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd >= 0) {
        close(fd);
        return;
    }
    c->is_denied = errno != ENOENT && errno != ESRCH;
    snprintf(path, sizeof path, "/proc/%u", c->pid);
    c->is_gone = access(path, F_OK) != 0;
}

/* The word size of the program; 0 if it is unknown. */
static int read_class(uint32_t pid)
{
    char path[HFN_PROC_PATH_BYTES];
    unsigned char head[20] = { 0 };
    ssize_t got;
    int fd;

    snprintf(path, sizeof path, "/proc/%u/exe", pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    got = fd < 0 ? 0 : read(fd, head, sizeof head);
    if (fd >= 0) {
        close(fd);
    }
    return got == (ssize_t)sizeof head && memcmp(head, ELFMAG, SELFMAG) == 0 ? head[EI_CLASS] : 0;
}

/* ---- The conditions, in the order in which an attach refuses. */

static bool check_existence(check *c)
{
    char name[64];

    if (c->pid == (uint32_t)getpid()) {
        c->refusal = HFN_REMOTE_DENIED;
        return set_result(c, false, "process %u is hotfn itself", c->pid);
    }
    if (c->pid == 0 || c->facts.state == 0) {
        return set_result(c, false, "there is no process %u here", c->pid);
    }
    read_name(c->pid, name, sizeof name);
    return set_result(c, true, "process %u is %s", c->pid, name);
}

/* The memory of a process cannot be read by the number of a thread that has ended. */
static bool has_other_threads(uint32_t pid)
{
    char path[HFN_PROC_PATH_BYTES];
    struct stat tasks;

    snprintf(path, sizeof path, "/proc/%u/task", pid);
    return stat(path, &tasks) == 0 && tasks.st_nlink > 3; /* `.`, `..` and one thread */
}

static bool check_end(check *c)
{
    if (c->facts.state == 'Z' && has_other_threads(c->pid)) {
        return set_result(c, false,
                          "process %u goes on after its main thread has ended (pthread_exit), and "
                          "cannot be read from outside: start it under hotfn run instead",
                          c->pid);
    }
    return c->facts.state == 'Z' || c->facts.state == 'X'
               ? set_result(c, false,
                            "process %u has ended; its parent has not fetched its exit status",
                            c->pid)
               : set_result(c, true, "it has not ended");
}

static bool check_stop(check *c)
{
    return c->facts.state == 'T'
               ? set_result(c, false, "process %u is stopped: continue it first (kill -CONT %u)",
                            c->pid, c->pid)
               : set_result(c, true, "it is not stopped");
}

static bool check_tracer(check *c)
{
    char name[64];

    if (c->facts.tracer == 0) {
        return set_result(c, true, "no debugger or tracer is attached to it");
    }
    read_name(c->facts.tracer, name, sizeof name);
    return set_result(
        c, false, "process %u is traced by %s (process %u): detach that debugger or tracer first",
        c->pid, name, c->facts.tracer);
}

static bool check_user(check *c)
{
    return c->is_denied && c->facts.uid != c->own.uid
               ? set_result(
                     c, false,
                     "process %u runs as user %u, and you are user %u: attach as that user or "
                     "as root",
                     c->pid, c->facts.uid, c->own.uid)
               : set_result(c, true, "it runs as user %u, and you are user %u", c->facts.uid,
                            c->own.uid);
}

/* Linux, Documentation/admin-guide/LSM/Yama.rst */
static bool check_ptrace_scope(check *c)
{
    int scope = c->ptrace_scope;

    if (c->is_denied && scope == 3) {
        return set_result(
            c, false,
            "kernel.yama.ptrace_scope is 3: no process of this system can be attached "
            "to until it is restarted with another value");
    }
    if (c->is_denied && scope > 0 && c->facts.uid == c->own.uid) {
        return set_result(
            c, false,
            "kernel.yama.ptrace_scope is %d: only %s may attach to process %u; attach "
            "as root, or set it to 0 (sysctl kernel.yama.ptrace_scope=0)",
            scope, scope == 1 ? "its ancestors and root" : "root", c->pid);
    }
    return scope < 0
               ? set_result(c, true, "this kernel has no kernel.yama.ptrace_scope")
               : set_result(c, true, "kernel.yama.ptrace_scope is %d, which is no obstacle", scope);
}

static bool check_capabilities(check *c)
{
    unsigned long long permitted = c->facts.permitted;

    if (c->is_denied && (c->facts.permitted & ~c->own.permitted) != 0) {
        return set_result(c, false,
                          "process %u has capabilities that you lack (CapPrm %llx): attach as root "
                          "with all capabilities",
                          c->pid, permitted);
    }
    return permitted
               ? set_result(c, true, "its capabilities are no obstacle (CapPrm %llx)", permitted)
               : set_result(c, true, "it has no capabilities");
}

static bool check_namespaces(check *c)
{
    bool is_other_user = is_other_user_namespace(c->pid);
    bool is_other_pid = c->facts.pid_levels != c->own.pid_levels;
    bool is_other_mount = is_other_mount_namespace(c->pid);

    if (c->is_denied && is_other_user) {
        return set_result(c, false,
                          "process %u is in another user namespace: attach from inside its "
                          "container, or as root outside of it",
                          c->pid);
    }
    return is_other_user || is_other_pid || is_other_mount
               ? set_result(c, true, "it is in another namespace (%s%s%s), which is no obstacle",
                            is_other_user ? " user" : "", is_other_pid ? " PID" : "",
                            is_other_mount ? " mount" : "")
               : set_result(c, true, "it is in your namespaces");
}

static bool check_permission(check *c)
{
    if (c->is_gone) {
        c->refusal = HFN_REMOTE_NOT_FOUND;
        return set_result(c, false, "process %u has just ended", c->pid);
    }
    if (c->is_denied && c->is_explained) {
        return set_result(c, false,
                          "the system does not let you attach to it, for the cause above");
    }
    if (c->is_denied) {
        return set_result(
            c, false,
            "the system does not let you attach to process %u, which has made itself "
            "unreadable (prctl PR_SET_DUMPABLE, setuid) or is confined: attach as root",
            c->pid);
    }
    return set_result(c, true, "the system lets you attach to it");
}

static bool check_system_calls(check *c)
{
    return c->facts.seccomp
               ? set_result(
                     c, false,
                     "process %u filters its system calls (seccomp mode %u), and a call that "
                     "its filter forbids could end it: start it under hotfn run instead",
                     c->pid, c->facts.seccomp)
               : set_result(c, true, "it does not filter its system calls (seccomp)");
}

/* After mlockall(MCL_FUTURE) all rows would be populated. */
static bool check_memory(check *c)
{
    return c->facts.locked_kib
               ? set_result(c, false,
                            "process %u locks memory (VmLck %u kB), and could lock the record's, "
                            "too: start it under hotfn run instead",
                            c->pid, c->facts.locked_kib)
               : set_result(c, true, "it locks no memory");
}

static bool check_program(check *c)
{
    int class = read_class(c->pid);

    if (class == 0) {
        return set_result(
            c, false,
            "process %u has no program that can be read: it is a thread of the kernel, "
            "or is being replaced; name another process",
            c->pid);
    }
    if (class != (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32)) {
        return set_result(
            c, false,
            "process %u is not a program of this hotfn's word size (%zu bits): attach "
            "with a hotfn of its word size",
            c->pid, sizeof(void *) * 8);
    }
    return set_result(c, true, "it is a program of %zu bits, as hotfn is", sizeof(void *) * 8);
}

typedef struct condition {
    const char *name;
    bool (*holds)(check *c);
    hfn_remote_verdict refusal;
    bool ends_check; /* if it does not hold, the next ones mean nothing */
    bool is_cause;   /* of a denial */
} condition;

static const condition conditions[] = {
    { "process", check_existence, HFN_REMOTE_NOT_FOUND, true, false },
    { "end", check_end, HFN_REMOTE_ENDED, true, false },
    { "stop", check_stop, HFN_REMOTE_SUSPENDED, false, false },
    { "tracer", check_tracer, HFN_REMOTE_TRACED, false, false },
    { "user", check_user, HFN_REMOTE_DENIED, false, true },
    { "ptrace-scope", check_ptrace_scope, HFN_REMOTE_DENIED, false, true },
    { "capabilities", check_capabilities, HFN_REMOTE_DENIED, false, true },
    { "namespaces", check_namespaces, HFN_REMOTE_DENIED, false, true },
    { "system-calls", check_system_calls, HFN_REMOTE_FILTERED, false, false },
    { "memory", check_memory, HFN_REMOTE_LOCKED, false, false },
    { "permission", check_permission, HFN_REMOTE_DENIED, true, false },
    { "program", check_program, HFN_REMOTE_FOREIGN, true, false },
};

void hfn_os_remote_check(uint32_t pid, hfn_remote_check_fn report, void *user)
{
    check c = { .pid = pid, .ptrace_scope = read_ptrace_scope() };

    read_facts((uint32_t)getpid(), &c.own);
    if (read_facts(pid, &c.facts)) {
        try_memory(&c);
    }
    for (size_t i = 0; i < sizeof conditions / sizeof *conditions; i++) {
        bool holds;
        c.refusal = conditions[i].refusal;
        holds = conditions[i].holds(&c);
        c.is_explained = c.is_explained || (!holds && conditions[i].is_cause);
        report(user, conditions[i].name, holds ? HFN_REMOTE_READY : c.refusal, c.text);
        if (!holds && conditions[i].ends_check) {
            return;
        }
    }
}
