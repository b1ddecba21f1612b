/* SPDX-License-Identifier: MIT */
/* This system cannot open files: every function fails. */
#include "os/files.h"
#include "os/none/unavailable.h"

hfn_os_error hfn_os_open_file(hfn_os_file *out, const char *path, uint32_t flags)
{
    (void)out;
    (void)path;
    (void)flags;
    return UNAVAILABLE;
}

hfn_os_error hfn_os_close_file(hfn_os_file file)
{
    (void)file;
    return UNAVAILABLE;
}

hfn_os_error hfn_os_get_file_info(hfn_os_file file, hfn_os_file_info *out)
{
    (void)file;
    (void)out;
    return UNAVAILABLE;
}

hfn_os_error hfn_os_get_path_info(const char *path, hfn_os_file_info *out)
{
    (void)path;
    (void)out;
    return UNAVAILABLE;
}

hfn_os_error hfn_os_get_link_info(const char *path, hfn_os_file_info *out)
{
    (void)path;
    (void)out;
    return UNAVAILABLE;
}

bool hfn_os_resolve_path(const char *path, char *out, size_t capacity)
{
    (void)path;
    (void)out;
    (void)capacity;
    return false;
}

void hfn_os_get_file_path(hfn_os_file file, char *out, size_t capacity)
{
    (void)file;
    if (capacity > 0) {
        out[0] = 0;
    }
}

hfn_os_error hfn_os_read_at(hfn_os_file file, uint64_t offset, void *out, uint64_t byte_count,
                            uint64_t *done)
{
    (void)file;
    (void)offset;
    (void)out;
    (void)byte_count;
    *done = 0;
    return UNAVAILABLE;
}

hfn_os_error hfn_os_read_next(hfn_os_file file, void *out, uint64_t byte_count, uint64_t *done)
{
    (void)file;
    (void)out;
    (void)byte_count;
    *done = 0;
    return UNAVAILABLE;
}

hfn_os_error hfn_os_write_at(hfn_os_file file, uint64_t offset, const void *bytes,
                             uint64_t byte_count)
{
    (void)file;
    (void)offset;
    (void)bytes;
    (void)byte_count;
    return UNAVAILABLE;
}

hfn_os_error hfn_os_write_next(hfn_os_file file, const void *bytes, uint64_t byte_count)
{
    (void)file;
    (void)bytes;
    (void)byte_count;
    return UNAVAILABLE;
}

uint64_t hfn_os_find_data(hfn_os_file file, uint64_t offset, uint64_t end)
{
    (void)file;
    (void)end;
    return offset; /* any byte may hold data */
}

hfn_os_error hfn_os_set_file_size(hfn_os_file file, uint64_t byte_count)
{
    (void)file;
    (void)byte_count;
    return UNAVAILABLE;
}

hfn_os_error hfn_os_allocate_space(hfn_os_file file, uint64_t offset, uint64_t byte_count)
{
    (void)file;
    (void)offset;
    (void)byte_count;
    return UNAVAILABLE;
}

hfn_os_error hfn_os_sync_file(hfn_os_file file)
{
    (void)file;
    return UNAVAILABLE;
}

void hfn_os_hold_size_limit(hfn_os_size_limit *held)
{
    (void)held;
}

void hfn_os_release_size_limit(const hfn_os_size_limit *held)
{
    (void)held;
}

bool hfn_os_try_lock_file(hfn_os_file file, hfn_os_lock lock)
{
    (void)file;
    (void)lock;
    return false;
}

void hfn_os_unlock_file(hfn_os_file file)
{
    (void)file;
}

hfn_os_error hfn_os_create_link(const char *target, const char *path)
{
    (void)target;
    (void)path;
    return UNAVAILABLE;
}

hfn_os_error hfn_os_remove_file(const char *path)
{
    (void)path;
    return UNAVAILABLE;
}

hfn_os_error hfn_os_replace_file(const char *from, const char *to)
{
    (void)from;
    (void)to;
    return UNAVAILABLE;
}

hfn_os_error hfn_os_create_temporary(hfn_os_file *out, const char *path, uint32_t flags, char *name,
                                     size_t capacity)
{
    (void)out;
    (void)path;
    (void)flags;
    (void)name;
    (void)capacity;
    return UNAVAILABLE;
}

void hfn_os_make_folders(const char *path)
{
    (void)path;
}
