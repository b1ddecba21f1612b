/* SPDX-License-Identifier: MIT */
/* Files: open, read, write, lock, identify and replace them.  Every call continues after a signal
 * interrupts it, and returns errors as its result. */
#ifndef HFN_OS_FILES_H
#define HFN_OS_FILES_H

#include "os/error.h"

#include <stddef.h>
#include <stdint.h>

/* An open file, or HFN_OS_NO_FILE; hfn_os_is_open distinguishes them. */
typedef struct hfn_os_file {
    int64_t handle;
} hfn_os_file;

#define HFN_OS_NO_FILE ((hfn_os_file){ -1 })

static inline bool hfn_os_is_open(hfn_os_file file)
{
    return file.handle >= 0;
}

/* How to open a file.  Child processes never inherit the open file. */
enum {
    HFN_OS_READ = 1,
    HFN_OS_WRITE = 2,      /* may be combined with HFN_OS_READ                            */
    HFN_OS_CREATE_NEW = 4, /* fails if the path exists                                    */
    HFN_OS_EMPTY = 64,     /* creates the file, or removes its contents                   */
    HFN_OS_APPEND = 8,     /* creates the file if it does not exist                       */
    HFN_OS_PRIVATE = 16,   /* a file that is created is readable by its owner alone       */
    HFN_OS_NO_WAIT = 32,   /* a pipe without a writer does not block the call             */
};

hfn_os_error hfn_os_open_file(hfn_os_file *out, const char *path, uint32_t flags);
/* Also returns the errors of writes that the system had delayed. */
hfn_os_error hfn_os_close_file(hfn_os_file file);

/* ---- Identity. */

typedef enum hfn_os_file_kind {
    HFN_OS_REGULAR_FILE = 1,
    HFN_OS_FOLDER,
    HFN_OS_LINK,
    HFN_OS_NULL_DEVICE,
    HFN_OS_OTHER_FILE,
} hfn_os_file_kind;

typedef struct hfn_os_file_info {
    hfn_os_file_kind kind;
    bool is_own; /* it belongs to the user that this process acts for */
    uint64_t device, inode, byte_count;
    uint64_t stored_bytes;            /* less than byte_count in a sparse file */
    uint64_t modified_s, modified_ns; /* contents                                       */
    uint64_t changed_s, changed_ns;   /* contents or attributes; no program can set it  */
} hfn_os_file_info;

hfn_os_error hfn_os_get_file_info(hfn_os_file file, hfn_os_file_info *out);
/* Follows links: describes the file that the path leads to. */
hfn_os_error hfn_os_get_path_info(const char *path, hfn_os_file_info *out);
/* Follows no link: if the path is a link, describes the link. */
hfn_os_error hfn_os_get_link_info(const char *path, hfn_os_file_info *out);
/* Store the absolute path without links in out.  Returns false if the file does not exist or the
 * path does not fit. */
bool hfn_os_resolve_path(const char *path, char *out, size_t capacity);

/* Store in out a path by which this process can open the file again.  It exists for shared memory
 * too, which has no name. */
void hfn_os_get_file_path(hfn_os_file file, char *out, size_t capacity);

/* ---- Contents. */

/* Read byte_count bytes, or fewer if the file ends or an error occurs.  *done always receives the
 * number of bytes read. */
hfn_os_error hfn_os_read_at(hfn_os_file file, uint64_t offset, void *out, uint64_t byte_count,
                            uint64_t *done);
/* The same from the current position; works for pipes too. */
hfn_os_error hfn_os_read_next(hfn_os_file file, void *out, uint64_t byte_count, uint64_t *done);
/* Write all bytes, or return an error. */
hfn_os_error hfn_os_write_at(hfn_os_file file, uint64_t offset, const void *bytes,
                             uint64_t byte_count);
hfn_os_error hfn_os_write_next(hfn_os_file file, const void *bytes, uint64_t byte_count);
/* Find the first offset in [offset, end) at which the file may hold a byte other than 0; end if it
 * holds none. */
uint64_t hfn_os_find_data(hfn_os_file file, uint64_t offset, uint64_t end);

/* Set the file's size.  If it is above the soft limit on file sizes, the limit is raised during
 * this call. */
hfn_os_error hfn_os_set_file_size(hfn_os_file file, uint64_t byte_count);
/* Reserve disk space for a range, so that a store to it through a mapping cannot fail. */
hfn_os_error hfn_os_allocate_space(hfn_os_file file, uint64_t offset, uint64_t byte_count);
/* Create or overwrite the file with these bytes.  After an error a regular file is removed, since
 * incomplete contents are of no use. */
hfn_os_error hfn_os_save_file(const char *path, const void *bytes, uint64_t byte_count);
/* Return when the file's contents are on the disk. */
hfn_os_error hfn_os_sync_file(hfn_os_file file);

/* Between hold and release, a write of this thread past the user's limit on file sizes returns an
 * error instead of ending the process. */
typedef struct hfn_os_size_limit {
    uint64_t state[40];
} hfn_os_size_limit;
void hfn_os_hold_size_limit(hfn_os_size_limit *held);
void hfn_os_release_size_limit(const hfn_os_size_limit *held);

/* ---- Locks, released when the file is closed or its process ends. */

typedef enum hfn_os_lock { HFN_OS_SHARED_LOCK = 1, HFN_OS_EXCLUSIVE_LOCK } hfn_os_lock;

/* Returns false if another process holds a conflicting lock. */
bool hfn_os_try_lock_file(hfn_os_file file, hfn_os_lock lock);
void hfn_os_unlock_file(hfn_os_file file);

/* ---- Names. */

/* Create a symbolic link at path that leads to target. */
hfn_os_error hfn_os_create_link(const char *target, const char *path);
hfn_os_error hfn_os_remove_file(const char *path);
/* Rename `from` to `to` atomically: a process that opens `to` meanwhile gets either the complete
 * old file or the complete new file. */
hfn_os_error hfn_os_replace_file(const char *from, const char *to);
/* Create a file in the folder of path that hfn_os_replace_file can rename to path.  name receives
 * its path, which takes up to strlen(path) + 32 bytes. */
hfn_os_error hfn_os_create_temporary(hfn_os_file *out, const char *path, uint32_t flags, char *name,
                                     size_t capacity);
/* Create the folder and its missing parents, accessible to the user alone.  Existing folders are
 * not changed. */
void hfn_os_make_folders(const char *path);

#endif
