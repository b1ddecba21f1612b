/* SPDX-License-Identifier: MIT */
/* Files by the C library's system calls.  These functions run in the launcher, or when a session
 * starts, but never between a hook and its function. */
#include "os/files.h"

#include "os/linux/raw.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

enum { MAX_TEMPORARIES = 256, NULL_MAJOR = 1, NULL_MINOR = 3, STORED_UNIT_BYTES = 512 };
#define ALLOCATION_STEP_BYTES (UINT64_C(4) << 20)

static int get_fd(hfn_os_file file)
{
    return (int)file.handle;
}

static int get_open_flags(uint32_t flags)
{
    int access = !(flags & HFN_OS_WRITE) ? O_RDONLY : flags & HFN_OS_READ ? O_RDWR : O_WRONLY;

    return access | O_CLOEXEC | O_NOCTTY | (flags & HFN_OS_CREATE_NEW ? O_CREAT | O_EXCL : 0) |
           (flags & HFN_OS_EMPTY ? O_CREAT | O_TRUNC : 0) |
           (flags & HFN_OS_APPEND ? O_CREAT | O_APPEND : 0) |
           (flags & HFN_OS_NO_WAIT ? O_NONBLOCK : 0);
}

/* open(2) may be interrupted on a named pipe and on file systems that a process serves. */
hfn_os_error hfn_os_open_file(hfn_os_file *out, const char *path, uint32_t flags)
{
    int fd;

    do {
        fd = open(path, get_open_flags(flags), flags & HFN_OS_PRIVATE ? 0600 : 0666);
    } while (fd < 0 && errno == EINTR);
    if (fd < 0) {
        return errno;
    }
    out->handle = fd;
    return 0;
}

/* close(2): the descriptor is closed also after EINTR, and must not be closed again. */
hfn_os_error hfn_os_close_file(hfn_os_file file)
{
    return close(get_fd(file)) == 0 || errno == EINTR ? 0 : errno;
}

/* ---- Identity. */

static hfn_os_file_kind get_kind(const struct stat *file)
{
    if (S_ISREG(file->st_mode)) {
        return HFN_OS_REGULAR_FILE;
    }
    if (S_ISDIR(file->st_mode)) {
        return HFN_OS_FOLDER;
    }
    if (S_ISLNK(file->st_mode)) {
        return HFN_OS_LINK;
    }
    return S_ISCHR(file->st_mode) && major(file->st_rdev) == NULL_MAJOR &&
                   minor(file->st_rdev) == NULL_MINOR
               ? HFN_OS_NULL_DEVICE
               : HFN_OS_OTHER_FILE;
}

/* Raw: the agent fills this too, and it must not call the program's libc. */
static uint64_t get_user_id(void)
{
#if defined(SYS_geteuid32)
    return (uint64_t)hfn_raw_syscall3(SYS_geteuid32, 0, 0, 0);
#else
    return (uint64_t)hfn_raw_syscall3(SYS_geteuid, 0, 0, 0);
#endif
}

static void fill_info(hfn_os_file_info *out, const struct stat *file)
{
    *out = (hfn_os_file_info){
        .kind = get_kind(file),
        .is_own = file->st_uid == get_user_id(),
        .device = (uint64_t)file->st_dev,
        .inode = (uint64_t)file->st_ino,
        .byte_count = (uint64_t)file->st_size,
        .stored_bytes = (uint64_t)file->st_blocks * STORED_UNIT_BYTES,
        .modified_s = (uint64_t)file->st_mtim.tv_sec,
        .modified_ns = (uint64_t)file->st_mtim.tv_nsec,
        .changed_s = (uint64_t)file->st_ctim.tv_sec,
        .changed_ns = (uint64_t)file->st_ctim.tv_nsec,
    };
}

hfn_os_error hfn_os_get_file_info(hfn_os_file file, hfn_os_file_info *out)
{
    struct stat found;

    if (fstat(get_fd(file), &found) != 0) {
        return errno;
    }
    fill_info(out, &found);
    return 0;
}

hfn_os_error hfn_os_get_path_info(const char *path, hfn_os_file_info *out)
{
    struct stat found;

    if (stat(path, &found) != 0) {
        return errno;
    }
    fill_info(out, &found);
    return 0;
}

hfn_os_error hfn_os_get_link_info(const char *path, hfn_os_file_info *out)
{
    struct stat found;

    if (lstat(path, &found) != 0) {
        return errno;
    }
    fill_info(out, &found);
    return 0;
}

bool hfn_os_resolve_path(const char *path, char *out, size_t capacity)
{
    char resolved[PATH_MAX];

    if (!realpath(path, resolved) || strlen(resolved) >= capacity) {
        return false;
    }
    memcpy(out, resolved, strlen(resolved) + 1);
    return true;
}

void hfn_os_get_file_path(hfn_os_file file, char *out, size_t capacity)
{
    snprintf(out, capacity, "/proc/self/fd/%d", get_fd(file));
}

/* ---- Contents. */

hfn_os_error hfn_os_read_at(hfn_os_file file, uint64_t offset, void *out, uint64_t byte_count,
                            uint64_t *done)
{
    *done = 0;
    while (*done < byte_count) {
        ssize_t got = pread(get_fd(file), (uint8_t *)out + *done, (size_t)(byte_count - *done),
                            (off_t)(offset + *done));
        if (got < 0 && errno != EINTR) {
            return errno;
        }
        if (got == 0) {
            break;
        }
        *done += got > 0 ? (uint64_t)got : 0;
    }
    return 0;
}

hfn_os_error hfn_os_read_next(hfn_os_file file, void *out, uint64_t byte_count, uint64_t *done)
{
    *done = 0;
    while (*done < byte_count) {
        ssize_t got = read(get_fd(file), (uint8_t *)out + *done, (size_t)(byte_count - *done));
        if (got < 0 && errno != EINTR) {
            return errno;
        }
        if (got == 0) {
            break;
        }
        *done += got > 0 ? (uint64_t)got : 0;
    }
    return 0;
}

hfn_os_error hfn_os_write_at(hfn_os_file file, uint64_t offset, const void *bytes,
                             uint64_t byte_count)
{
    for (uint64_t done = 0; done < byte_count;) {
        ssize_t put = pwrite(get_fd(file), (const uint8_t *)bytes + done,
                             (size_t)(byte_count - done), (off_t)(offset + done));
        if (put == 0 || (put < 0 && errno != EINTR)) {
            return put == 0 ? EIO : errno;
        }
        done += put > 0 ? (uint64_t)put : 0;
    }
    return 0;
}

hfn_os_error hfn_os_write_next(hfn_os_file file, const void *bytes, uint64_t byte_count)
{
    for (uint64_t done = 0; done < byte_count;) {
        ssize_t put =
            write(get_fd(file), (const uint8_t *)bytes + done, (size_t)(byte_count - done));
        if (put == 0 || (put < 0 && errno != EINTR)) {
            return put == 0 ? EIO : errno;
        }
        done += put > 0 ? (uint64_t)put : 0;
    }
    return 0;
}

uint64_t hfn_os_find_data(hfn_os_file file, uint64_t offset, uint64_t end)
{
    off_t found = lseek(get_fd(file), (off_t)offset, SEEK_DATA);

    if (found < 0) {
        return errno == ENXIO
                   ? end
                   : offset; /* only holes follow, or the file system does not support it */
    }
    return (uint64_t)found < end ? (uint64_t)found : end;
}

hfn_os_error hfn_os_set_file_size(hfn_os_file file, uint64_t byte_count)
{
    struct rlimit limit, raised;
    hfn_os_error error;
    bool lifted = false;

    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < byte_count) {
        if (limit.rlim_max < byte_count) {
            return EFBIG; /* before the kernel sends SIGXFSZ */
        }
        raised = limit;
        raised.rlim_cur = limit.rlim_max;
        lifted = setrlimit(RLIMIT_FSIZE, &raised) == 0;
    }
    error = ftruncate(get_fd(file), (off_t)byte_count) == 0 ? 0 : errno;
    if (lifted) {
        setrlimit(RLIMIT_FSIZE, &limit);
    }
    return error;
}

/* tmpfs undoes an interrupted allocation, so that a program with a fast timer needs small steps. */
hfn_os_error hfn_os_allocate_space(hfn_os_file file, uint64_t offset, uint64_t byte_count)
{
    while (byte_count > 0) {
        uint64_t step = byte_count < ALLOCATION_STEP_BYTES ? byte_count : ALLOCATION_STEP_BYTES;
        int error = posix_fallocate(get_fd(file), (off_t)offset, (off_t)step);

        if (error && error != EINTR) {
            return error;
        }
        offset += error ? 0 : step;
        byte_count -= error ? 0 : step;
    }
    return 0;
}

hfn_os_error hfn_os_sync_file(hfn_os_file file)
{
    int failed;

    do {
        failed = fdatasync(get_fd(file));
    } while (failed && errno == EINTR);
    return failed ? errno : 0;
}

/* The signal is blocked while bytes are written, and consumed unless it was pending before. */
typedef struct size_signal {
    sigset_t only, before;
    bool was_pending;
} size_signal;

_Static_assert(sizeof(size_signal) <= sizeof(hfn_os_size_limit), "room for two signal sets");

void hfn_os_hold_size_limit(hfn_os_size_limit *held)
{
    size_signal signal;
    sigset_t pending;

    sigemptyset(&signal.only);
    sigaddset(&signal.only, SIGXFSZ);
    sigpending(&pending);
    signal.was_pending = sigismember(&pending, SIGXFSZ) == 1;
    pthread_sigmask(SIG_BLOCK, &signal.only, &signal.before);
    memcpy(held, &signal, sizeof signal);
}

void hfn_os_release_size_limit(const hfn_os_size_limit *held)
{
    static const struct timespec now = { 0, 0 };
    size_signal signal;
    int saved = errno;

    memcpy(&signal, held, sizeof signal);
    if (!signal.was_pending) {
        sigtimedwait(&signal.only, NULL, &now);
    }
    pthread_sigmask(SIG_SETMASK, &signal.before, NULL);
    errno = saved;
}

/* ---- Locks. */

bool hfn_os_try_lock_file(hfn_os_file file, hfn_os_lock lock)
{
    return flock(get_fd(file), (lock == HFN_OS_SHARED_LOCK ? LOCK_SH : LOCK_EX) | LOCK_NB) == 0;
}

void hfn_os_unlock_file(hfn_os_file file)
{
    flock(get_fd(file), LOCK_UN);
}

/* ---- Names. */

hfn_os_error hfn_os_create_link(const char *target, const char *path)
{
    return symlink(target, path) == 0 ? 0 : errno;
}

hfn_os_error hfn_os_remove_file(const char *path)
{
    return unlink(path) == 0 ? 0 : errno;
}

hfn_os_error hfn_os_replace_file(const char *from, const char *to)
{
    return rename(from, to) == 0 ? 0 : errno;
}

/* A killed process with the same number may have left its file, since numbers repeat in
 * containers. */
hfn_os_error hfn_os_create_temporary(hfn_os_file *out, const char *path, uint32_t flags, char *name,
                                     size_t capacity)
{
    hfn_os_error error = EEXIST;

    for (uint32_t n = 0; error == EEXIST && n < MAX_TEMPORARIES; n++) {
        int length = snprintf(name, capacity, "%s.%lx.%x.tmp", path, (unsigned long)getpid(), n);
        if (length < 0 || (size_t)length >= capacity) {
            return ENAMETOOLONG;
        }
        error = hfn_os_open_file(out, name, flags | HFN_OS_WRITE | HFN_OS_CREATE_NEW);
    }
    return error;
}

void hfn_os_make_folders(const char *path)
{
    char part[PATH_MAX];

    if (snprintf(part, sizeof part, "%s", path) >= (int)sizeof part || part[0] == 0) {
        return;
    }
    for (char *slash = strchr(part + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        mkdir(part, 0700);
        *slash = '/';
    }
    mkdir(part, 0700);
}
