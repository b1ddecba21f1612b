/* SPDX-License-Identifier: MIT */
/* How much processor time this process can get: the processors that it may run on, and the quotas
 * of its control group and of the groups above (Documentation/admin-guide/cgroup-v2.rst, cpu.max;
 * scheduler/sched-bwc.rst, cpu.cfs_quota_us). */
#include "os/process.h"

#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

uint32_t hfn_os_count_allowed_processors(void)
{
    cpu_set_t set;
    uint32_t online = hfn_os_count_processors();
    int allowed = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 0;

    return allowed > 0 && (uint32_t)allowed < online ? (uint32_t)allowed : online;
}

/* The first word of the file is a number above 0; "max" and -1 mean that there is no limit. */
static bool holds_limit(const char *path)
{
    FILE *file = fopen(path, "re");
    long long limit = 0;
    bool is_limited = file && fscanf(file, "%lld", &limit) == 1 && limit > 0;

    if (file) {
        fclose(file);
    }
    return is_limited;
}

/* Look in the folder of the group and in those above it. */
static bool is_group_limited(const char *root, char *group, const char *name)
{
    char path[PATH_MAX + 128];

    for (;;) {
        snprintf(path, sizeof path, "%s%s/%s", root, group, name);
        if (holds_limit(path)) {
            return true;
        }
        char *slash = strrchr(group, '/');
        if (!slash) {
            return false;
        }
        *slash = 0;
    }
}

/* A line is "number:controllers:/group"; without controllers it is of version 2. */
static bool is_line_limited(char *line)
{
    char *controllers = strchr(line, ':'), *group;

    line[strcspn(line, "\n")] = 0;
    group = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!group) {
        return false;
    }
    *group++ = 0;
    controllers++;
    if (!*controllers) {
        return is_group_limited("/sys/fs/cgroup", group, "cpu.max");
    }
    for (char *word = strtok(controllers, ","); word; word = strtok(NULL, ",")) {
        if (strcmp(word, "cpu") == 0) {
            return is_group_limited("/sys/fs/cgroup/cpu", group, "cpu.cfs_quota_us");
        }
    }
    return false;
}

bool hfn_os_has_processor_quota(void)
{
    FILE *file = fopen("/proc/self/cgroup", "re");
    char line[PATH_MAX];
    bool is_limited = false;

    while (file && !is_limited && fgets(line, sizeof line, file)) {
        is_limited = is_line_limited(line);
    }
    if (file) {
        fclose(file);
    }
    return is_limited;
}
