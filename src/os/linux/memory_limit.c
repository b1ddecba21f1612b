/* SPDX-License-Identifier: MIT */
/*
 * How much memory this process may use: the smallest of the machine's memory and the limits of its
 * control groups, of which each is also bound by those above it (Linux,
 * Documentation/admin-guide/cgroup-v2.rst, memory.max; cgroup-v1/memory.rst).
 */
#include "os/memory.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static uint64_t get_smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* UINT64_MAX if there is no such file, or it has no number ("max"). */
static uint64_t read_limit(const char *root, const char *group, const char *name)
{
    char path[4200], text[32] = "";
    uint64_t limit = UINT64_MAX;
    FILE *file;

    snprintf(path, sizeof path, "%s%s/%s", root, group, name);
    file = fopen(path, "re");
    if (!file) {
        return UINT64_MAX;
    }
    if (!fgets(text, sizeof text, file) || sscanf(text, "%" SCNu64, &limit) != 1) {
        limit = UINT64_MAX;
    }
    fclose(file);
    return limit;
}

/* The group's limit and those of all groups above it; changes group. */
static uint64_t read_hierarchy(const char *root, char *group, const char *name)
{
    uint64_t limit = UINT64_MAX;
    char *slash;

    for (;;) {
        limit = get_smaller(limit, read_limit(root, group, name));
        slash = strrchr(group, '/');
        if (!slash) {
            return limit;
        }
        *slash = 0;
    }
}

/* A line of /proc/self/cgroup: number:controllers:path. */
static uint64_t read_group_limit(char *line)
{
    char *controllers = strchr(line, ':'), *group;

    line[strcspn(line, "\n")] = 0;
    group = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!group) {
        return UINT64_MAX;
    }
    *group++ = 0;
    if (controllers[1] == 0) {
        return read_hierarchy("/sys/fs/cgroup", group, "memory.max");
    }
    return strcmp(controllers + 1, "memory") == 0
               ? read_hierarchy("/sys/fs/cgroup/memory", group, "memory.limit_in_bytes")
               : UINT64_MAX;
}

uint64_t hfn_os_get_memory_limit(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    uint64_t limit = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : UINT64_MAX;
    char line[4200];
    FILE *file = fopen("/proc/self/cgroup", "re");

    while (file && fgets(line, sizeof line, file)) {
        limit = get_smaller(limit, read_group_limit(line));
    }
    if (file) {
        fclose(file);
    }
    return limit;
}
