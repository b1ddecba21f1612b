/* SPDX-License-Identifier: MIT */
/* The id of the installation and the spool, below the user's state folder. */
#include "push/spool.h"

#include "push/http.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_PATH = 4096 + 400 };
#define DEFAULT_SPOOL_BYTES (UINT64_C(64) << 20)

static bool make_folders(const char *path)
{
    char part[MAX_PATH];

    snprintf(part, sizeof part, "%s", path);
    for (char *slash = strchr(part + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        mkdir(part, 0700);
        *slash = '/';
    }
    return mkdir(part, 0700) == 0 || errno == EEXIST;
}

hotfn_status state_find_folder(char out[4096], const hotfn_push_options *options, hotfn_error *err)
{
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    char spool[MAX_PATH];
    int length;

    if (options->state_dir) {
        length = snprintf(out, 4096, "%s", options->state_dir);
    } else if (state && state[0] == '/') {
        length = snprintf(out, 4096, "%s/hotfn", state);
    } else if (home && home[0] == '/') {
        length = snprintf(out, 4096, "%s/.local/state/hotfn", home);
    } else {
        return push_fail(err, HOTFN_E_OPTION, "HOME is not set: name a folder for the spool");
    }
    snprintf(spool, sizeof spool, "%s/spool", out);
    if (length >= 4096 || !make_folders(spool)) {
        return push_fail(err, HOTFN_E_IO, "%.256s cannot be created: %s", spool, strerror(errno));
    }
    return HOTFN_OK;
}

/* Write to a temporary file and rename it: readers see the whole file or none. */
static bool replace_file(const char *path, const void *bytes, size_t byte_count)
{
    char temporary[MAX_PATH + 32];

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

static bool read_file(const char *path, byte_buffer *out)
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

hotfn_status state_get_client(char out[33], const char *folder, hotfn_error *err)
{
    char path[MAX_PATH];
    byte_buffer known = { 0 };
    uint8_t random[16];

    snprintf(path, sizeof path, "%s/client-id", folder);
    if (!read_file(path, &known) || known.used < 32) {
        if (getrandom(random, sizeof random, 0) != sizeof random) {
            return push_fail(err, HOTFN_E_IO, "the system has no random bytes");
        }
        buffer_free(&known);
        for (size_t i = 0; i < sizeof random; i++) {
            buffer_append_format(&known, "%02x", random[i]);
        }
        if (known.failed || !replace_file(path, known.data, known.used)) {
            buffer_free(&known);
            return push_fail(err, HOTFN_E_IO, "%.256s cannot be written: %s", path,
                             strerror(errno));
        }
    }
    memcpy(out, known.data, 32);
    out[32] = 0;
    buffer_free(&known);
    return HOTFN_OK;
}

static uint64_t sum_spool(const char *folder)
{
    char path[MAX_PATH];
    struct stat status;
    uint64_t sum = 0;

    snprintf(path, sizeof path, "%s/spool", folder);
    DIR *directory = opendir(path);
    for (struct dirent *e; directory && (e = readdir(directory));) {
        snprintf(path, sizeof path, "%s/spool/%s", folder, e->d_name);
        if (e->d_name[0] != '.' && stat(path, &status) == 0) {
            sum += (uint64_t)status.st_size;
        }
    }
    if (directory) {
        closedir(directory);
    }
    return sum;
}

hotfn_status spool_write(const char *folder, const char *name, const byte_buffer *bytes,
                         uint64_t max_bytes, hotfn_error *err)
{
    char path[MAX_PATH];

    max_bytes = max_bytes ? max_bytes : DEFAULT_SPOOL_BYTES;
    snprintf(path, sizeof path, "%s/spool/%s", folder, name);
    if (access(path, F_OK) == 0) {
        return HOTFN_OK;
    }
    if (sum_spool(folder) + bytes->used > max_bytes) {
        return push_fail(
            err, HOTFN_E_LIMIT,
            "the collector is away and the spool is full (%llu bytes): keep the record "
            "and send it later with hotfn push",
            (unsigned long long)max_bytes);
    }
    return replace_file(path, bytes->data, bytes->used)
               ? HOTFN_OK
               : push_fail(err, HOTFN_E_IO, "%.256s cannot be written: %s", path, strerror(errno));
}

bool spool_read(const char *folder, const char *name, byte_buffer *out)
{
    char path[MAX_PATH];

    snprintf(path, sizeof path, "%s/spool/%s", folder, name);
    return read_file(path, out);
}

void spool_remove(const char *folder, const char *name)
{
    char path[MAX_PATH];

    snprintf(path, sizeof path, "%s/spool/%s", folder, name);
    unlink(path);
}

void spool_for_each(const char *folder, bool (*each)(void *user, const char *name), void *user)
{
    char path[MAX_PATH];
    bool more = true;

    snprintf(path, sizeof path, "%s/spool", folder);
    DIR *directory = opendir(path);
    for (struct dirent *e; more && directory && (e = readdir(directory));) {
        const char *dot = strrchr(e->d_name, '.');
        if (dot && strcmp(dot, ".run") == 0) {
            more = each(user, e->d_name);
        }
    }
    if (directory) {
        closedir(directory);
    }
}
