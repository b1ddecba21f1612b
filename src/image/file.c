/* SPDX-License-Identifier: MIT */
/*
 * A regular file of 64 KiB and more is mapped privately: the symbols of a 100 MB library then cost
 * the few pages that hold them. A smaller one, and whatever is not a regular file (a pipe), is
 * read. What a map costs in safety: a file that somebody cuts while it is mapped gives SIGBUS
 * beyond its new end. Linkers, package tools and our own writer replace files by rename, which is
 * harmless.
 */
#include "image/file.h"

#include "base/memory.h"
#include "base/status.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAP_FROM_BYTES = 64 * 1024 };
#define MAX_STREAM_BYTES ((size_t)1 << 30) /* of a pipe, which might never end */

static hotfn_status fail_io(hotfn_error *err, const char *path, const char *what)
{
    return hfn_fail(err, HOTFN_E_IO, path, HOTFN_NO_OFFSET, "cannot %s it: %s", what,
                    strerror(errno));
}

/* One read, again when a signal came between; -1 with errno. */
static ssize_t read_some(int fd, uint8_t *into, size_t bytes)
{
    ssize_t got;

    do {
        got = read(fd, into, bytes);
    } while (got < 0 && errno == EINTR);
    return got;
}

static hotfn_status read_all(hfn_file *out, int fd, const char *path, const hotfn_env *env,
                             hotfn_error *err)
{
    hotfn_status status = HOTFN_OK;
    uint8_t *data = NULL;
    size_t capacity = 0, size = 0;
    ssize_t got = 1;

    while (got > 0) {
        if (size >= MAX_STREAM_BYTES) {
            status = hfn_fail(err, HOTFN_E_LIMIT, path, size,
                              "more than 1 GiB from a pipe: save it as a file first");
            goto fail;
        }
        if (!hfn_grow(env, (void **)&data, &capacity, size + 4096, 1)) {
            status =
                hfn_fail(err, HOTFN_E_NO_MEMORY, path, HOTFN_NO_OFFSET, "no memory to read it");
            goto fail;
        }
        got = read_some(fd, data + size, capacity - size);
        size += got > 0 ? (size_t)got : 0;
    }
    if (got < 0) {
        status = fail_io(err, path, "read");
        goto fail;
    }
    *out = (hfn_file){ data, size, capacity, 0 };
    return HOTFN_OK;
fail:
    hfn_free(env, data, capacity);
    return status;
}

static hotfn_status map_all(hfn_file *out, int fd, uint64_t size, const char *path,
                            hotfn_error *err)
{
    void *data = MAP_FAILED;

    errno = EFBIG;
    if (size <= SIZE_MAX) {
        data = mmap(NULL, (size_t)size, PROT_READ, MAP_PRIVATE, fd, 0);
    }
    if (data == MAP_FAILED) {
        return fail_io(err, path, "map");
    }
    *out = (hfn_file){ data, size, 0, (size_t)size };
    return HOTFN_OK;
}

hotfn_status hfn_file_open(hfn_file *out, const char *path, const hotfn_env *env, hotfn_error *err)
{
    hotfn_status status;
    struct stat info;
    int fd;

    do {
        fd = open(path, O_RDONLY | O_CLOEXEC);
    } while (fd < 0 && errno == EINTR); /* a pipe with a name, a file system of a process */
    if (fd < 0) {
        return fail_io(err, path, "open");
    }
    if (fstat(fd, &info) != 0) {
        status = fail_io(err, path, "stat");
    } else if (S_ISREG(info.st_mode) && info.st_size >= MAP_FROM_BYTES) {
        status = map_all(out, fd, (uint64_t)info.st_size, path, err);
    } else {
        status = read_all(out, fd, path, env, err);
    }
    close(fd);
    return status;
}

void hfn_file_close(hfn_file *file, const hotfn_env *env)
{
    if (file->mapped_bytes) {
        munmap((void *)(uintptr_t)file->data, file->mapped_bytes);
    } else if (file->owned_bytes) {
        hfn_free(env, (void *)(uintptr_t)file->data, file->owned_bytes);
    }
    memset(file, 0, sizeof *file);
}
