/* SPDX-License-Identifier: MIT */
/* Whether a process can be entered, from what /proc reports about it; nothing in it is touched.
 * Each refusal is one sentence with the reason and what to do. */
#include "os/linux/remote_parts.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* proc(5): /proc/PID/status */
typedef struct process_facts {
    char state;
    uint32_t tracer, uid, seccomp, locked_kib;
    uint64_t permitted; /* capabilities */
} process_facts;

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
    }
    fclose(status);
    out->permitted = permitted;
    return out->state != 0;
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

static bool is_other_user_namespace(uint32_t pid)
{
    char path[HFN_PROC_PATH_BYTES], own[64] = "", other[64] = "";

    snprintf(path, sizeof path, "/proc/%u/ns/user", pid);
    return readlink("/proc/self/ns/user", own, sizeof own - 1) > 0 &&
           readlink(path, other, sizeof other - 1) > 0 && strcmp(own, other) != 0;
}

static void explain_denial(uint32_t pid, const process_facts *facts, char *why, size_t bytes)
{
    process_facts own = { 0 };
    int scope = read_ptrace_scope();

    read_facts((uint32_t)getpid(), &own);
    if (facts->uid != own.uid) {
        snprintf(why, bytes,
                 "process %u runs as user %u, and you are user %u: attach as that user or as root",
                 pid, facts->uid, own.uid);
    } else if (scope == 3) {
        snprintf(why, bytes,
                 "kernel.yama.ptrace_scope is 3: no process of this system can be attached to "
                 "until it is restarted with another value");
    } else if ((facts->permitted & ~own.permitted) != 0) {
        snprintf(why, bytes,
                 "process %u has capabilities that you lack (CapPrm %llx): attach as root", pid,
                 (unsigned long long)facts->permitted);
    } else if (scope > 0) {
        snprintf(
            why, bytes,
            "kernel.yama.ptrace_scope is %d: only %s may attach to process %u; attach as root, "
            "or set it to 0 (sysctl kernel.yama.ptrace_scope=0)",
            scope, scope == 1 ? "its ancestors and root" : "root", pid);
    } else if (is_other_user_namespace(pid)) {
        snprintf(why, bytes,
                 "process %u is in another user namespace: attach from inside its container, or as "
                 "root outside of it",
                 pid);
    } else {
        snprintf(why, bytes,
                 "the system does not let you attach to process %u, which has made itself "
                 "unreadable (prctl PR_SET_DUMPABLE, setuid) or is confined: attach as root",
                 pid);
    }
}

/* Opening the memory needs the permission that ptrace needs (ptrace(2), PTRACE_MODE_ATTACH). */
static hfn_os_error try_memory(uint32_t pid)
{
    char path[HFN_PROC_PATH_BYTES];
    int fd;

    snprintf(path, sizeof path, "/proc/%u/mem", pid);
    fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0) {
        return errno;
    }
    close(fd);
    return 0;
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

static hfn_remote_verdict check_state(uint32_t pid, const process_facts *facts, char *why,
                                      size_t bytes)
{
    char name[64];

    switch (facts->state) {
    case 'Z':
    case 'X':
        snprintf(why, bytes, "process %u has ended; its parent has not fetched its exit status",
                 pid);
        return HFN_REMOTE_ENDED;
    case 'T':
        snprintf(why, bytes, "process %u is stopped: continue it first (kill -CONT %u)", pid, pid);
        return HFN_REMOTE_SUSPENDED;
    default: break;
    }
    if (facts->tracer != 0) {
        read_name(facts->tracer, name, sizeof name);
        snprintf(why, bytes,
                 "process %u is traced by %s (process %u): detach that debugger or tracer first",
                 pid, name, facts->tracer);
        return HFN_REMOTE_TRACED;
    }
    if (facts->seccomp != 0) {
        snprintf(why, bytes,
                 "process %u filters its system calls (seccomp mode %u), and a call that its "
                 "filter forbids could end it: start it under hotfn run instead",
                 pid, facts->seccomp);
        return HFN_REMOTE_FILTERED;
    }
    if (facts->locked_kib != 0) { /* after mlockall(MCL_FUTURE) all rows would be populated */
        snprintf(
            why, bytes,
            "process %u locks memory (VmLck %u kB), and could lock the record's, too: start it "
            "under hotfn run instead",
            pid, facts->locked_kib);
        return HFN_REMOTE_LOCKED;
    }
    return HFN_REMOTE_READY;
}

hfn_remote_verdict hfn_os_remote_check(uint32_t pid, char *why, size_t bytes)
{
    hfn_remote_verdict verdict;
    process_facts facts;
    hfn_os_error error;

    if (pid == (uint32_t)getpid()) {
        snprintf(why, bytes, "process %u is hotfn itself", pid);
        return HFN_REMOTE_DENIED;
    }
    if (pid == 0 || !read_facts(pid, &facts)) {
        snprintf(why, bytes, "there is no process %u here", pid);
        return HFN_REMOTE_NOT_FOUND;
    }
    verdict = check_state(pid, &facts, why, bytes);
    if (verdict != HFN_REMOTE_READY) {
        return verdict;
    }
    error = try_memory(pid);
    if (error == ENOENT || error == ESRCH) {
        snprintf(why, bytes, "process %u has just ended", pid);
        return HFN_REMOTE_NOT_FOUND;
    }
    if (error != 0) {
        explain_denial(pid, &facts, why, bytes);
        return HFN_REMOTE_DENIED;
    }
    if (read_class(pid) != (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32)) {
        snprintf(why, bytes,
                 "process %u is not a program of this hotfn's word size (%zu bits): attach with a "
                 "hotfn of its own",
                 pid, sizeof(void *) * 8);
        return HFN_REMOTE_FOREIGN;
    }
    return HFN_REMOTE_READY;
}
