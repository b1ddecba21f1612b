/* SPDX-License-Identifier: MIT */
/* Who counts on when the program that was named has ended, a daemon that went to the background say: its record is
 * written by then.  A process is known by its number in the record, and believed if it maps the live record still: numbers
 * of other namespaces and of processes that ended mean somebody else, a zombie maps nothing. */
#include "run.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

enum { NAMED = 8 };

static bool maps_file(uint32_t pid, const struct stat *file)
{
    char line[4352], path[32];
    unsigned device[2];
    uint64_t inode;
    bool found = false;
    snprintf(path, sizeof path, "/proc/%" PRIu32 "/maps", pid);
    FILE *maps = fopen(path, "re");
    while (maps && !found && fgets(line, sizeof line, maps)) {
        found =
            sscanf(line, "%*x-%*x %*s %*x %x:%x %" SCNu64, &device[0], &device[1], &inode) == 3 &&
            inode == (uint64_t)file->st_ino && makedev(device[0], device[1]) == file->st_dev;
    }
    if (maps) {
        fclose(maps);
    }
    return found;
}

static bool is_among(const uint32_t *pids, uint32_t count, uint32_t pid)
{
    for (uint32_t i = 0; i < count; i++) {
        if (pids[i] == pid) {
            return true;
        }
    }
    return false;
}

void run_tell_left(const hotfn_record *record, const hotfn_live *live, uint32_t child)
{
    hotfn_record_info info = HOTFN_RECORD_INFO_INIT;
    uint32_t left[NAMED], count = 0;
    struct stat file;
    if (fstat(hotfn_live_fd(live), &file) != 0) {
        return;
    }
    hotfn_record_get_info(record, &info);
    for (uint32_t i = 0; i < info.thread_count && count < NAMED; i++) {
        hotfn_record_thread t = HOTFN_RECORD_THREAD_INIT;
        hotfn_record_get_thread(record, i, &t);
        if (t.pid != 0 && t.pid != child && !is_among(left, count, t.pid) &&
            maps_file(t.pid, &file)) {
            left[count++] = t.pid;
        }
    }
    if (count == 0) {
        return;
    }
    fprintf(stderr, "hotfn: goes on and is counted no more: process");
    for (uint32_t i = 0; i < count; i++) {
        fprintf(stderr, "%s %" PRIu32, i > 0 ? "," : "", left[i]);
    }
    fprintf(stderr, "%s (run a daemon in the foreground)\n", count == NAMED ? ", ..." : "");
}
