/* SPDX-License-Identifier: MIT */
/* A call of os/files.h that needs only the others, so it is the same on every system. */
#include "os/files.h"

hfn_os_error hfn_os_save_file(const char *path, const void *bytes, uint64_t byte_count)
{
    hfn_os_file_info info;
    hfn_os_file file;
    hfn_os_error error = hfn_os_open_file(&file, path, HFN_OS_WRITE | HFN_OS_EMPTY), late;
    bool is_regular;

    if (error != 0) {
        return error;
    }
    is_regular = hfn_os_get_file_info(file, &info) == 0 && info.kind == HFN_OS_REGULAR_FILE;
    error = hfn_os_write_next(file, bytes, byte_count);
    late = hfn_os_close_file(file);
    error = error != 0 ? error : late;
    if (error != 0 && is_regular) {
        hfn_os_remove_file(path);
    }
    return error;
}
