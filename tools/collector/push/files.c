/* SPDX-License-Identifier: MIT */
/* Files, random bytes and waiting by POSIX. */
#include "push/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { LONG_PATH_BYTES = PUSH_PATH_BYTES + 512 };

bool files_find_state(char out[PUSH_PATH_BYTES])
{
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    int length = PUSH_PATH_BYTES;

    if (state && state[0] == '/') {
        length = snprintf(out, PUSH_PATH_BYTES, "%s/hotfn", state);
    } else if (home && home[0] == '/') {
        length = snprintf(out, PUSH_PATH_BYTES, "%s/.local/state/hotfn", home);
    }
    return length < PUSH_PATH_BYTES;
}

bool files_make_folders(const char *path)
{
    char part[LONG_PATH_BYTES];

    snprintf(part, sizeof part, "%s", path);
    for (char *slash = strchr(part + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        mkdir(part, 0700);
        *slash = '/';
    }
    return mkdir(part, 0700) == 0 || errno == EEXIST;
}

bool files_replace(const char *path, const void *bytes, size_t byte_count)
{
    char temporary[LONG_PATH_BYTES + 32];

    snprintf(temporary, sizeof temporary, "%s.%ld.new", path, (long)getpid());
    int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    bool ok = fd >= 0;
    for (size_t at = 0; ok && at < byte_count;) {
        ssize_t n = write(fd, (const char *)bytes + at, byte_count - at);
        ok = n > 0 || (n < 0 && errno == EINTR);
        at += n > 0 ? (size_t)n : 0;
    }
    ok = ok && fsync(fd) == 0;
    if (fd >= 0) {
        ok = close(fd) == 0 && ok;
    }
    if (!ok || rename(temporary, path) != 0) {
        unlink(temporary);
        return false;
    }
    return true;
}

bool files_read(const char *path, byte_buffer *out)
{
    char bytes[65536];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : 0;

    while (fd >= 0 && (n = read(fd, bytes, sizeof bytes)) > 0) {
        buffer_append(out, bytes, (size_t)n);
    }
    if (fd >= 0) {
        close(fd);
    }
    return n == 0 && !out->failed;
}

bool files_exist(const char *path)
{
    return access(path, F_OK) == 0;
}

void files_remove(const char *path)
{
    unlink(path);
}

void files_for_each(const char *folder, bool (*each)(void *user, const char *name, uint64_t bytes),
                    void *user)
{
    char path[LONG_PATH_BYTES];
    struct stat status;
    bool more = true;

    DIR *directory = opendir(folder);
    for (struct dirent *e; more && directory && (e = readdir(directory));) {
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (stat(path, &status) == 0 && S_ISREG(status.st_mode)) {
            more = each(user, e->d_name, (uint64_t)status.st_size);
        }
    }
    if (directory) {
        closedir(directory);
    }
}

bool fill_random(void *out, size_t byte_count)
{
    return getrandom(out, byte_count, 0) == (ssize_t)byte_count;
}

void sleep_ms(uint32_t ms)
{
    struct timespec time = { ms / 1000, (long)(ms % 1000) * 1000000 };

    nanosleep(&time, NULL);
}
