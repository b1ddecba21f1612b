/* SPDX-License-Identifier: MIT */
/*
 * A regular file of 64 KiB or more is mapped privately: the symbols of a 100 MB library then cost
 * only the pages that hold them.  A smaller file, and whatever is not a regular file (a pipe), is
 * read.  A mapped file that another process truncates causes an access fault beyond its new end;
 * linkers, package tools and the writer of records replace files by rename, which is harmless.
 */
#include "image/file.h"

#include "base/memory.h"
#include "base/status.h"
#include "os/memory.h"

#include <string.h>

enum { MAP_FROM_BYTES = 64 * 1024 };
#define MAX_STREAM_BYTES ((size_t)1 << 30) /* of a pipe, which might never end */

static hotfn_status fail_io(hotfn_error *err, const char *path, const char *what,
                            hfn_os_error error)
{
    return hfn_report_error(err, HOTFN_E_IO, path, HOTFN_NO_OFFSET, "cannot %s it: %s", what,
                            hfn_os_get_error_text(error));
}

static hotfn_status read_all(hfn_file *out, hfn_os_file file, const char *path,
                             const hotfn_env *env, hotfn_error *err)
{
    hotfn_status status = HOTFN_OK;
    hfn_os_error error = 0;
    uint8_t *data = NULL;
    size_t capacity = 0, size = 0;
    uint64_t got = 0;

    do {
        if (size >= MAX_STREAM_BYTES) {
            status = hfn_report_error(err, HOTFN_E_LIMIT, path, size,
                                      "more than 1 GiB from a pipe: save it as a file first");
            goto fail;
        }
        if (!hfn_grow_array(env, (void **)&data, &capacity, size + 4096, 1)) {
            status = hfn_report_no_memory(err, path);
            goto fail;
        }
        error = hfn_os_read_next(file, data + size, capacity - size, &got);
        size += (size_t)got;
    } while (error == 0 && size == capacity);
    if (error != 0) {
        status = fail_io(err, path, "read", error);
        goto fail;
    }
    *out = (hfn_file){ data, size, capacity, 0 };
    return HOTFN_OK;
fail:
    hfn_free_memory(env, data, capacity);
    return status;
}

static hotfn_status map_all(hfn_file *out, hfn_os_file file, uint64_t size, const char *path,
                            hotfn_error *err)
{
    void *data;
    hfn_os_error error = hfn_os_map_file(&data, file, 0, size, 0, 0);

    if (error != 0) {
        return fail_io(err, path, "map", error);
    }
    *out = (hfn_file){ data, size, 0, (size_t)size };
    return HOTFN_OK;
}

hotfn_status hfn_file_open(hfn_file *out, const char *path, const hotfn_env *env, hotfn_error *err)
{
    hotfn_status status;
    hfn_os_file_info info;
    hfn_os_file file;
    hfn_os_error error = hfn_os_open_file(&file, path, HFN_OS_READ);

    if (error != 0) {
        return fail_io(err, path, "open", error);
    }
    error = hfn_os_get_file_info(file, &info);
    if (error != 0) {
        status = fail_io(err, path, "stat", error);
    } else if (info.kind == HFN_OS_REGULAR_FILE && info.byte_count >= MAP_FROM_BYTES) {
        status = map_all(out, file, info.byte_count, path, err);
    } else {
        status = read_all(out, file, path, env, err);
    }
    hfn_os_close_file(file);
    return status;
}

void hfn_file_close(hfn_file *file, const hotfn_env *env)
{
    if (file->mapped_bytes) {
        hfn_os_unmap((uint64_t)(uintptr_t)file->data, file->mapped_bytes);
    } else if (file->owned_bytes) {
        hfn_free_memory(env, (void *)(uintptr_t)file->data, file->owned_bytes);
    }
    memset(file, 0, sizeof *file);
}
