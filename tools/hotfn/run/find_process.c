/* SPDX-License-Identifier: MIT */
/* Finds the process of a program by its name, for `hotfn attach --name` and `hotfn top NAME`. */
#include "run.h"

#include "cli/cli_options.h"

#include <dirent.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_SHOWN = 8, NAME_BYTES = 256, PATH_BYTES = 4096 };

typedef struct found_process {
    uint32_t pid;
    char name[NAME_BYTES];
} found_process;

static bool keep_match(const char *glob, const char *path, char name[NAME_BYTES])
{
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;

    if (fnmatch(glob, base, 0) != 0) {
        return false;
    }
    snprintf(name, NAME_BYTES, "%.*s", NAME_BYTES - 1, base);
    return true;
}

static bool read_text(uint32_t pid, const char *file, char *out, size_t capacity)
{
    char path[64];
    FILE *in;
    size_t count = 0;

    snprintf(path, sizeof path, "/proc/%u/%s", pid, file);
    in = fopen(path, "r");
    if (in) {
        count = fread(out, 1, capacity - 1, in);
        fclose(in);
    }
    out[count] = 0;
    return count > 0;
}

/* Compare the glob with the name that the process was started with, with its file's name, and with
 * the name of its main thread: a program may be a symbolic link, or a script of an interpreter. */
static bool has_name(const char *glob, uint32_t pid, char name[NAME_BYTES])
{
    char text[PATH_BYTES], link[64];
    ssize_t length;

    if (read_text(pid, "cmdline", text, sizeof text) && keep_match(glob, text, name)) {
        return true;
    }
    snprintf(link, sizeof link, "/proc/%u/exe", pid);
    length = readlink(link, text, sizeof text - 1);
    if (length > 0) {
        text[length] = 0;
        if (keep_match(glob, text, name)) {
            return true;
        }
    }
    if (!read_text(pid, "comm", text, sizeof text)) {
        return false;
    }
    text[strcspn(text, "\n")] = 0;
    return keep_match(glob, text, name);
}

static void report_several(const char *command, const char *glob, const found_process *found,
                           uint32_t count)
{
    fprintf(stderr, "hotfn %s: %u processes are named '%s': ", command, count, glob);
    for (uint32_t i = 0; i < count && i < MAX_SHOWN; i++) {
        fprintf(stderr, "%s%u (%s)", i ? ", " : "", found[i].pid, found[i].name);
    }
    fprintf(stderr, "%s; name one by its number\n", count > MAX_SHOWN ? ", ..." : "");
}

bool run_find_process(const char *command, const char *glob, uint32_t *pid)
{
    found_process found[MAX_SHOWN], one;
    uint32_t count = 0;
    DIR *folder = opendir("/proc");
    const struct dirent *item;

    while (folder && (item = readdir(folder))) {
        if (!cli_parse_u32(item->d_name, 1, INT32_MAX, &one.pid) || one.pid == (uint32_t)getpid() ||
            !has_name(glob, one.pid, one.name)) {
            continue;
        }
        if (count < MAX_SHOWN) {
            found[count] = one;
        }
        count++;
    }
    if (folder) {
        closedir(folder);
    }
    if (count == 1) {
        *pid = found[0].pid;
        return true;
    }
    if (count > 1) {
        report_several(command, glob, found, count);
    } else {
        fprintf(stderr, "hotfn %s: no process is named '%s' (see ps -e)\n", command, glob);
    }
    return false;
}
