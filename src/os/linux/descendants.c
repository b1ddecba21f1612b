/* SPDX-License-Identifier: MIT */
/* The processes that a process started, from /proc (proc(5)). */
#include "os/descendants.h"

#include "os/process.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    PATH_BYTES = 64,
    STAT_BYTES = 1024,
    MAX_PROCESSES = 1 << 15,
    PARENT_FIELD = 4,
    CHILD_USER_FIELD = 16,
    CHILD_SYSTEM_FIELD = 17,
    START_FIELD = 22,
    STACK_FIELD = 28,
};

typedef struct process {
    uint32_t pid, parent;
} process;

/* Read some fields of a process's state.  The name of the program is in parentheses and may contain
 * any character, so the fields are counted from the last parenthesis. */
static bool read_fields(uint32_t pid, const int *numbers, uint64_t *values, int count)
{
    char path[PATH_BYTES], text[STAT_BYTES];

    snprintf(path, sizeof path, "/proc/%" PRIu32 "/stat", pid);
    FILE *file = fopen(path, "re");
    size_t length = file ? fread(text, 1, sizeof text - 1, file) : 0;
    if (file) {
        fclose(file);
    }
    text[length] = 0;
    char *at = strrchr(text, ')');
    for (int field = 2, next = 0; next < count; field++) {
        at = at ? strchr(at + 1, ' ') : NULL;
        if (!at) {
            return false;
        }
        if (field + 1 == numbers[next]) {
            values[next++] = strtoull(at + 1, NULL, 10);
        }
    }
    return true;
}

/* The processes of the system, by id; an array that the caller frees. */
static process *list_processes(size_t *count)
{
    static const int parent_field = PARENT_FIELD;
    process *list = calloc(MAX_PROCESSES, sizeof *list);
    DIR *processes = list ? opendir("/proc") : NULL;
    uint64_t parent;

    *count = 0;
    for (struct dirent *entry; processes && (entry = readdir(processes));) {
        uint32_t pid = (uint32_t)strtoul(entry->d_name, NULL, 10);
        if (pid != 0 && *count < MAX_PROCESSES && read_fields(pid, &parent_field, &parent, 1)) {
            list[(*count)++] = (process){ pid, (uint32_t)parent };
        }
    }
    if (processes) {
        closedir(processes);
    }
    return list;
}

/* Append the children of one thread, which the kernel lists (CONFIG_PROC_CHILDREN). */
static size_t append_children_of_thread(const char *path, uint32_t *family, size_t found)
{
    FILE *file = fopen(path, "re");

    while (file && found < MAX_PROCESSES && fscanf(file, "%" SCNu32, &family[found]) == 1) {
        found++;
    }
    if (file) {
        fclose(file);
    }
    return found;
}

static size_t append_children(uint32_t pid, uint32_t *family, size_t found)
{
    char path[PATH_BYTES];

    snprintf(path, sizeof path, "/proc/%" PRIu32 "/task", pid);
    DIR *threads = opendir(path);
    for (struct dirent *entry; threads && (entry = readdir(threads));) {
        uint32_t thread = (uint32_t)strtoul(entry->d_name, NULL, 10);
        if (thread != 0) {
            snprintf(path, sizeof path, "/proc/%" PRIu32 "/task/%" PRIu32 "/children", pid, thread);
            found = append_children_of_thread(path, family, found);
        }
    }
    if (threads) {
        closedir(threads);
    }
    return found;
}

/* The same on kernels without such lists, from the parents of all processes. */
static size_t append_children_by_parent(uint32_t pid, process *list, size_t count, uint32_t *family,
                                        size_t found)
{
    for (size_t i = 0; i < count; i++) {
        if (list[i].parent == pid && found < MAX_PROCESSES) {
            family[found++] = list[i].pid;
            list[i].parent = 0;
        }
    }
    return found;
}

/* To read the lists of children takes a hundredth of the time of a pass through all processes. */
void hfn_os_each_descendant(uint32_t pid, hfn_os_descendant_fn visit, void *user)
{
    bool has_lists = access("/proc/thread-self/children", R_OK) == 0;
    size_t count = 0, found = 0;
    process *list = has_lists ? NULL : list_processes(&count);
    uint32_t *family = calloc(MAX_PROCESSES, sizeof *family);

    if (family) {
        family[found++] = pid;
    }
    for (size_t at = 0; at < found; at++) {
        found = has_lists ? append_children(family[at], family, found)
                          : append_children_by_parent(family[at], list, count, family, found);
    }
    for (size_t i = 1; i < found; i++) {
        visit(user, family[i]);
    }
    free(family);
    free(list);
}

bool hfn_os_get_process_facts(uint32_t pid, hfn_os_process_facts *out)
{
    static const int numbers[] = { CHILD_USER_FIELD, CHILD_SYSTEM_FIELD, START_FIELD, STACK_FIELD };
    uint64_t values[4], tick_ns = 1000000000u / (uint64_t)sysconf(_SC_CLK_TCK);

    *out = (hfn_os_process_facts){ 0 };
    if (!read_fields(pid, numbers, values, 4)) {
        return false;
    }
    out->children_ns = (values[0] + values[1]) * tick_ns;
    out->start = values[2];
    out->program = values[3];
    out->cpu_ns = hfn_os_get_process_cpu_ns(pid);
    return true;
}

bool hfn_os_get_process_program(uint32_t pid, char *out, size_t capacity)
{
    char path[PATH_BYTES];

    snprintf(path, sizeof path, "/proc/%" PRIu32 "/exe", pid);
    ssize_t length = capacity > 0 ? readlink(path, out, capacity - 1) : -1;
    if (length <= 0) {
        return false;
    }
    out[length] = 0;
    return true;
}

static uint64_t sum_ns(const struct rusage *usage)
{
    return (uint64_t)(usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) * 1000000000u +
           (uint64_t)(usage->ru_utime.tv_usec + usage->ru_stime.tv_usec) * 1000u;
}

/* The kernel's waitid, unlike libc's, also returns the resource usage (waitid(2)). */
bool hfn_os_get_ended_cpu_ns(uint32_t pid, uint64_t *own_ns, uint64_t *children_ns)
{
    struct rusage usage = { 0 };
    siginfo_t info = { 0 };

    if (syscall(SYS_waitid, P_PID, (id_t)pid, &info, WEXITED | WNOWAIT | WNOHANG, &usage) != 0 ||
        info.si_pid == 0) {
        return false;
    }
    *own_ns = hfn_os_get_process_cpu_ns(pid);
    uint64_t both = sum_ns(&usage);
    *children_ns = both > *own_ns ? both - *own_ns : 0;
    return true;
}
