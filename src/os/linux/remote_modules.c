/* SPDX-License-Identifier: MIT */
/* What /proc reports about another process: its modules, its identity, its end.  A module is a file
 * of which pages are mapped executable; no dynamic linker is asked. */
#include "os/linux/remote_parts.h"

#include "os/child.h"
#include "os/process.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { LINE_BYTES = HFN_OS_PATH_BYTES + 128 };

typedef struct map_line {
    uint64_t begin, end, offset, inode;
    unsigned major, minor;
    bool is_executable, is_private;
    const char *path; /* into the line */
} map_line;

static bool parse_line(char *line, map_line *out)
{
    char protection[5];
    int path_at = 0;

    if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64 " %n", &out->begin,
               &out->end, protection, &out->offset, &out->major, &out->minor, &out->inode,
               &path_at) < 7) {
        return false;
    }
    line[strcspn(line, "\n")] = 0;
    out->is_executable = protection[2] == 'x';
    out->is_private = protection[3] == 'p';
    out->path = line + path_at;
    return true;
}

static FILE *open_maps(uint32_t pid)
{
    char path[HFN_PROC_PATH_BYTES];

    snprintf(path, sizeof path, "/proc/%u/maps", pid);
    return fopen(path, "re");
}

static hfn_remote_code get_code(const map_line *line)
{
    return (hfn_remote_code){ line->begin, line->end, (uint64_t)line->major << 32 | line->minor,
                              line->inode, line->offset };
}

bool hfn_os_remote_each_file(uint32_t pid, hfn_remote_code_fn visit, void *user)
{
    char line[LINE_BYTES];
    FILE *maps = open_maps(pid);
    hfn_remote_code code;
    bool go_on = true;
    map_line parsed;

    if (!maps) {
        return false;
    }
    while (go_on && fgets(line, sizeof line, maps)) {
        if (parse_line(line, &parsed) && parsed.inode != 0 && parsed.is_private) {
            code = get_code(&parsed);
            go_on = visit(user, &code);
        }
    }
    fclose(maps);
    return true;
}

/* ---- Modules. */

typedef struct module_walk {
    uint32_t pid;
    hfn_remote_module module; /* being collected; base 0: none */
    uint64_t inode, last_offset;
    unsigned major, minor;
    struct stat program;
    hfn_remote_module_fn visit;
    void *user;
    bool go_on;
} module_walk;

static bool is_file(const char *path, const module_walk *walk)
{
    struct stat file;

    return stat(path, &file) == 0 && file.st_ino == walk->inode;
}

/* The path in the mount namespace of the caller, if it leads to the same file there. */
static bool find_path(module_walk *walk, const char *path)
{
    hfn_remote_module *m = &walk->module;

    if (path[0] == '/' && is_file(path, walk)) {
        snprintf(m->path, sizeof m->path, "%s", path);
        return true;
    }
    return snprintf(m->path, sizeof m->path, "/proc/%u/root%s", walk->pid, path) <
               (int)sizeof m->path &&
           is_file(m->path, walk);
}

static void finish_module(module_walk *walk)
{
    hfn_remote_module *m = &walk->module;
    char path[HFN_OS_PATH_BYTES];

    if (m->base != 0 && m->code_count > 0 && walk->go_on) {
        memcpy(path, m->path, sizeof path);
        m->is_main = walk->inode == walk->program.st_ino;
        m->is_available = find_path(walk, path);
        if (!m->is_available) {
            memcpy(m->path, path, sizeof path);
        }
        walk->go_on = walk->visit(walk->user, m);
    }
    m->base = 0;
    m->code_count = 0;
}

/* The segments of a module lie as far apart as in the file, plus what their alignment adds.  A
 * program may also map its own file as data, anywhere. */
static bool is_next_segment(const module_walk *walk, const map_line *line)
{
    const uint64_t max_padding = UINT64_C(64) << 20;
    uint64_t distance = line->begin - walk->module.base;

    return line->inode == walk->inode && line->major == walk->major && line->minor == walk->minor &&
           line->offset != 0 && distance >= line->offset && distance - line->offset < max_padding;
}

static void add_line(module_walk *walk, const map_line *line)
{
    hfn_remote_module *m = &walk->module;

    if (line->inode == 0) {
        return; /* the .bss of a module, or memory between two */
    }
    if (!is_next_segment(walk, line)) {
        finish_module(walk);
        walk->inode = line->inode;
        walk->major = line->major;
        walk->minor = line->minor;
        m->base = line->offset == 0 ? line->begin : 0;
        snprintf(m->path, sizeof m->path, "%s", line->path);
    }
    m->end = line->end;
    if (line->is_executable && line->is_private && m->code_count < HFN_REMOTE_MODULE_CODE) {
        m->code[m->code_count++] = get_code(line);
    }
}

bool hfn_os_remote_each_module(uint32_t pid, hfn_remote_module_fn visit, void *user)
{
    module_walk walk = { .pid = pid, .visit = visit, .user = user, .go_on = true };
    char path[HFN_PROC_PATH_BYTES], line[LINE_BYTES];
    FILE *maps = open_maps(pid);
    map_line parsed;

    if (!maps) {
        return false;
    }
    snprintf(path, sizeof path, "/proc/%u/exe", pid);
    stat(path, &walk.program);
    while (walk.go_on && fgets(line, sizeof line, maps)) {
        if (parse_line(line, &parsed)) {
            add_line(&walk, &parsed);
        }
    }
    finish_module(&walk);
    fclose(maps);
    return true;
}

/* ---- Shared memory. */

bool hfn_os_remote_find_shared(uint32_t pid, const char *name, hfn_remote_range *out)
{
    char path[128], line[LINE_BYTES];
    FILE *maps = open_maps(pid);
    map_line parsed;
    bool found = false;

    snprintf(path, sizeof path, "/memfd:%s (deleted)", name);
    while (maps && !found && fgets(line, sizeof line, maps)) {
        found = parse_line(line, &parsed) && strcmp(parsed.path, path) == 0;
    }
    if (found) {
        *out = (hfn_remote_range){ parsed.begin, parsed.end };
    }
    if (maps) {
        fclose(maps);
    }
    return found;
}

void hfn_os_remote_each_sharer(const char *name, hfn_remote_sharer_fn visit, void *user)
{
    DIR *processes = opendir("/proc");
    hfn_remote_range range;

    for (struct dirent *entry; processes && (entry = readdir(processes));) {
        uint32_t pid = (uint32_t)strtoul(entry->d_name, NULL, 10);
        if (pid != 0 && pid != (uint32_t)getpid() && hfn_os_remote_find_shared(pid, name, &range)) {
            visit(user, pid);
        }
    }
    if (processes) {
        closedir(processes);
    }
}

/* ---- Identity and end. */

bool hfn_os_remote_get_identity(uint32_t pid, uint32_t *own_id, uint32_t *id_namespace)
{
    char path[HFN_PROC_PATH_BYTES], line[256], *word;
    struct stat space;
    FILE *status;

    *own_id = pid;
    snprintf(path, sizeof path, "/proc/%u/ns/pid", pid);
    *id_namespace = stat(path, &space) == 0 ? (uint32_t)space.st_ino : 0;
    snprintf(path, sizeof path, "/proc/%u/status", pid);
    status = fopen(path, "re");
    if (!status) {
        return false;
    }
    while (fgets(line, sizeof line, status)) {
        if (strncmp(line, "NSpid:", 6) == 0) { /* the last one is that of its own namespace */
            word = strrchr(line, '\t');
            sscanf(word ? word : "", "%u", own_id);
        }
    }
    fclose(status);
    return true;
}

/* The kernel passes the address of the dynamic linker in the auxiliary vector. */
bool hfn_os_remote_is_static(uint32_t pid)
{
    char path[HFN_PROC_PATH_BYTES];
    Elf64_auxv_t entry;
    bool is_static = false;
    FILE *file;

    snprintf(path, sizeof path, "/proc/%u/auxv", pid);
    file = fopen(path, "re");
    while (file && fread(&entry, sizeof entry, 1, file) == 1) {
        is_static = is_static || (entry.a_type == AT_BASE && entry.a_un.a_val == 0);
    }
    if (file) {
        fclose(file);
    }
    return is_static;
}

size_t hfn_os_remote_read_command(uint32_t pid, char *out, size_t capacity)
{
    char path[HFN_PROC_PATH_BYTES];
    size_t bytes = 0;
    FILE *file;

    snprintf(path, sizeof path, "/proc/%u/cmdline", pid);
    file = fopen(path, "re");
    if (file) {
        bytes = fread(out, 1, capacity, file);
        fclose(file);
    }
    return bytes;
}

bool hfn_os_remote_wait_end(uint32_t pid, uint64_t timeout_ns)
{
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    struct pollfd wait = { fd, POLLIN, 0 };
    uint64_t ms = timeout_ns / 1000000u;
    int got;

    if (fd < 0) {
        if (errno == ESRCH || hfn_os_process_is_gone(pid)) {
            return true;
        }
        nanosleep(&(struct timespec){ 0, timeout_ns < 10000000 ? (long)timeout_ns : 10000000 },
                  NULL);
        return false; /* before Linux 5.3 the caller asks again */
    }
    got = poll(&wait, 1, ms > INT32_MAX ? -1 : (int)ms);
    close(fd);
    return got > 0;
}
