/* SPDX-License-Identifier: MIT */
/* The live record of a process: `hotfn run`, which is the process itself or one of its ancestors,
 * has it open. */
#include "os/remote.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define RECORD_LINK "/memfd:hotfn-record"
enum { MAX_ANCESTORS = 64 };

static bool find_among_files(uint32_t pid, char *path, size_t capacity)
{
    char folder[64], link[512], file[sizeof folder + 300];
    bool found = false;

    snprintf(folder, sizeof folder, "/proc/%" PRIu32 "/fd", pid);
    DIR *files = opendir(folder);
    for (struct dirent *entry; !found && files && (entry = readdir(files));) {
        snprintf(file, sizeof file, "%s/%s", folder, entry->d_name);
        ssize_t n = readlink(file, link, sizeof link - 1);
        link[n > 0 ? n : 0] = 0;
        size_t length = strlen(link);
        found = strncmp(link, RECORD_LINK, strlen(RECORD_LINK)) == 0 ||
                (length > 4 && strcmp(link + length - 4, ".hfr") == 0);
    }
    if (files) {
        closedir(files);
    }
    return found && snprintf(path, capacity, "%s", file) < (int)capacity;
}

static uint32_t get_parent(uint32_t pid)
{
    char path[64], line[256];
    uint32_t parent = 0;

    snprintf(path, sizeof path, "/proc/%" PRIu32 "/status", pid);
    FILE *status = fopen(path, "re");
    while (status && fgets(line, sizeof line, status)) {
        if (sscanf(line, "PPid: %" SCNu32, &parent) == 1) {
            break;
        }
    }
    if (status) {
        fclose(status);
    }
    return parent;
}

bool hfn_os_remote_find_record(uint32_t pid, char *path, size_t capacity)
{
    for (uint32_t at = pid, steps = 0; at > 1 && steps < MAX_ANCESTORS; steps++) {
        if (find_among_files(at, path, capacity)) {
            return true;
        }
        at = get_parent(at);
    }
    return false;
}

bool hfn_os_remote_names_record(void)
{
    return false;
}
