/* SPDX-License-Identifier: MIT */
/* Program files: the file that an exec of a name would run, whether the loader would load the agent
 * into it, and the file of this program. */
#include "os/child.h"
#include "os/os.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

_Static_assert(HFN_OS_PATH_BYTES == PATH_MAX, "realpath writes PATH_MAX bytes");

static int check_program(const char *path)
{
    struct stat file;

    if (stat(path, &file) != 0) {
        return ENOENT;
    }
    return S_ISREG(file.st_mode) && access(path, X_OK) == 0 ? 0 : EACCES;
}

hfn_os_error hfn_os_find_program(const char *name, char path[HFN_OS_PATH_BYTES])
{
    const char *folders = getenv("PATH");
    struct stat file;
    int result = ENOENT;

    if (strchr(name, '/')) {
        return snprintf(path, PATH_MAX, "%s", name) < PATH_MAX ? check_program(path) : ENOENT;
    }
    for (const char *at = folders ? folders : "/usr/bin:/bin"; *at;) {
        size_t length = strcspn(at, ":");
        int bytes = snprintf(path, PATH_MAX, "%.*s/%s", (int)(length ? length : 1),
                             length ? at : ".", name);
        at += length + (at[length] == ':');
        if (bytes >= PATH_MAX || stat(path, &file) != 0 || !S_ISREG(file.st_mode)) {
            continue;
        }
        if (access(path, X_OK) == 0) {
            return 0;
        }
        result = EACCES;
    }
    return result;
}

/* Lines of `ld.so --list`: "\tname => path (address)" or "\tpath (address)" (ld.so(8)). */
static void visit_listed(char *line, hfn_os_library_fn visit, void *user)
{
    char *arrow = strstr(line, "=> "), *path = arrow ? arrow + 3 : line + strspn(line, "\t ");
    char *end = strstr(path, " (0x");

    if (end && path[0] == '/') {
        *end = 0;
        visit(user, path);
    }
}

bool hfn_os_each_library(const char *loader, const char *program, hfn_os_library_fn visit,
                         void *user)
{
    const char *const command[] = { loader, "--list", program, NULL };
    posix_spawn_file_actions_t actions;
    char line[PATH_MAX + 256];
    int ends[2], status = -1;
    pid_t pid;

    if (pipe2(ends, O_CLOEXEC) != 0) {
        return false;
    }
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
    int error =
        posix_spawn(&pid, loader, &actions, NULL, (char *const *)(uintptr_t)command, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    FILE *output = fdopen(ends[0], "r");
    while (error == 0 && output && fgets(line, sizeof line, output)) {
        visit_listed(line, visit, user);
    }
    if (output) {
        fclose(output);
    } else {
        close(ends[0]);
    }
    while (error == 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return error == 0 && status == 0;
}

bool hfn_os_is_folder(const char *path)
{
    struct stat file;

    return stat(path, &file) == 0 && S_ISDIR(file.st_mode);
}

void hfn_os_get_temporary_folder(char path[HFN_OS_PATH_BYTES])
{
    memcpy(path, "/tmp", sizeof "/tmp");
}

bool hfn_os_is_readable(const char *path)
{
    return access(path, R_OK) == 0;
}

/* ld.so(8), 'secure-execution mode'. */
bool hfn_os_gains_rights(const char *path)
{
    char capability[64];
    struct stat file;

    if (stat(path, &file) != 0) {
        return false;
    }
    bool set_user = (file.st_mode & S_ISUID) && file.st_uid != getuid();
    bool set_group = (file.st_mode & S_ISGID) && file.st_gid != getgid();
    bool capable =
        getuid() != 0 && getxattr(path, "security.capability", capability, sizeof capability) > 0;
    return set_user || set_group || capable || getuid() != geteuid();
}

bool hfn_os_identify_file(const char *path, uint64_t *device, uint64_t *inode)
{
    struct stat file;

    if (stat(path, &file) != 0) {
        return false;
    }
    *device = (uint64_t)file.st_dev;
    *inode = (uint64_t)file.st_ino;
    return true;
}

/* ---- This program. */

typedef struct own_module {
    uint64_t address;
    char *path;
    bool found, is_main;
} own_module;

static bool find_own_module(void *user, const hfn_os_module *module)
{
    own_module *own = user;

    if (own->address < module->base || own->address >= module->end) {
        return true;
    }
    own->found = snprintf(own->path, PATH_MAX, "%s", module->path) < PATH_MAX;
    own->is_main = module->is_main;
    return false;
}

bool hfn_os_own_path(char path[HFN_OS_PATH_BYTES])
{
    own_module own = { (uint64_t)(uintptr_t)&hfn_os_own_path, path, false, false };

    hfn_os_each_module(find_own_module, &own);
    if (own.found && !own.is_main) {
        return true;
    }
    ssize_t bytes = readlink("/proc/self/exe", path, PATH_MAX - 1);
    path[bytes > 0 ? bytes : 0] = 0;
    return bytes > 0;
}

bool hfn_os_can_share_files(void)
{
    return access("/proc/self/exe", F_OK) == 0;
}

void hfn_os_shared_path(int fd, char *path, size_t path_bytes)
{
    snprintf(path, path_bytes, "/proc/%d/fd/%d", (int)getpid(), fd);
}

const char *hfn_os_platform(void)
{
    const char *platform = (const char *)(uintptr_t)getauxval(AT_PLATFORM);

    return platform ? platform : "";
}
