/* SPDX-License-Identifier: MIT */
/*
 * Files of the caller that another process maps.  The process opens the file through the caller's
 * /proc/PID/fd.  A process of another user or in other namespaces cannot; it receives the
 * descriptor instead:
 *
 *   target   socketpair
 *   caller   pidfd_getfd one end, sendmsg SCM_RIGHTS
 *   target   recvmsg at the other end, close both
 */
#include "os/linux/remote_parts.h"

#include "os/child.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)

enum { RETRIES = 4 /* of a close */ };

/* At the scratch address in the target, whose pointers are as large. */
typedef struct message {
    int32_t ends[2];
    char byte;
    struct iovec part;
    struct msghdr header;
    _Alignas(struct cmsghdr) uint8_t control[CMSG_SPACE(sizeof(int))];
} message;

static void close_there(hfn_remote *r, uint64_t fd)
{
    for (int i = 0;
         i < RETRIES && hfn_linux_make_call(r, NULL, SYS_close, fd, 0, 0, 0, 0, 0) == EIO; i++) {
    }
}

static void fill_message(message *m, uint64_t at)
{
    m->part = (struct iovec){ (void *)(uintptr_t)(at + offsetof(message, byte)), 1 };
    m->header = (struct msghdr){
        .msg_iov = (void *)(uintptr_t)(at + offsetof(message, part)),
        .msg_iovlen = 1,
        .msg_control = (void *)(uintptr_t)(at + offsetof(message, control)),
        .msg_controllen = sizeof m->control,
    };
}

/* Duplicates the target's end of the socket pair and sends the file through it. */
static hfn_os_error send_file(const hfn_remote *r, int end_there, int fd)
{
    int process = hfn_linux_step_fails() ? -1 : (int)syscall(SYS_pidfd_open, r->pid, 0);
    int end = process < 0 ? -1 : (int)syscall(SYS_pidfd_getfd, process, end_there, 0);
    hfn_os_error error = end < 0 ? errno : 0;
    message m = { .byte = 'f' };
    struct cmsghdr *head;

    fill_message(&m, (uint64_t)(uintptr_t)&m);
    head = CMSG_FIRSTHDR(&m.header);
    *head = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof fd), .cmsg_level = SOL_SOCKET };
    head->cmsg_type = SCM_RIGHTS;
    memcpy(CMSG_DATA(head), &fd, sizeof fd);
    if (end >= 0 && sendmsg(end, &m.header, MSG_DONTWAIT | MSG_NOSIGNAL) != 1) {
        error = errno;
    }
    if (end >= 0) {
        close(end);
    }
    if (process >= 0) {
        close(process);
    }
    return error;
}

static hfn_os_error receive_file(hfn_remote *r, int end, uint64_t scratch, uint64_t *out)
{
    message m = { .byte = 0 };
    const struct cmsghdr *head = (const struct cmsghdr *)m.control;
    hfn_os_error error;
    int fd;

    fill_message(&m, scratch);
    if (!hfn_os_remote_write(r, scratch, &m, sizeof m)) {
        return EIO;
    }
    error = hfn_linux_make_call(r, NULL, SYS_recvmsg, (uint64_t)end,
                                scratch + offsetof(message, header),
                                MSG_CMSG_CLOEXEC | MSG_DONTWAIT, 0, 0, 0);
    if (error != 0) {
        return error;
    }
    if (!hfn_os_remote_read(r, scratch, &m, sizeof m)) {
        return EIO;
    }
    if (head->cmsg_type != SCM_RIGHTS || head->cmsg_len != CMSG_LEN(sizeof fd)) {
        return EPERM; /* a security module has removed the descriptor */
    }
    memcpy(&fd, m.control + CMSG_LEN(0), sizeof fd);
    *out = (uint64_t)fd;
    return 0;
}

static hfn_os_error hand_over_file(hfn_remote *r, int fd, uint64_t scratch, uint64_t *out)
{
    int32_t ends[2] = { -1, -1 };
    bool are_known = false;
    hfn_os_error error = hfn_linux_make_call(r, NULL, SYS_socketpair, AF_UNIX,
                                             SOCK_DGRAM | SOCK_CLOEXEC, 0, scratch, 0, 0);

    if (error != 0) {
        return error;
    }
    for (int i = 0; i < RETRIES && !are_known; i++) {
        are_known = hfn_os_remote_read(r, scratch, ends, sizeof ends);
    }
    if (!are_known) {
        return EIO; /* no number of another file of the target may be closed */
    }
    error = send_file(r, ends[0], fd);
    if (error == 0) {
        error = receive_file(r, ends[1], scratch, out);
    }
    close_there(r, (uint64_t)ends[0]);
    close_there(r, (uint64_t)ends[1]);
    return error;
}

static hfn_os_error open_there(hfn_remote *r, int fd, uint64_t scratch, uint64_t *out)
{
    char path[HFN_PROC_PATH_BYTES];

    hfn_os_shared_path(fd, path, sizeof path);
    return hfn_os_remote_write(r, scratch, path, (uint32_t)strlen(path) + 1)
               ? hfn_linux_make_call(r, out, SYS_openat, (uint64_t)AT_FDCWD, scratch,
                                     O_RDWR | O_CLOEXEC, 0, 0, 0)
               : EIO;
}

hfn_os_error hfn_os_remote_map_file(hfn_remote *r, hfn_os_file file, uint64_t scratch,
                                    uint64_t address, uint64_t byte_count)
{
    uint64_t fd = 0;
    hfn_os_error error = open_there(r, (int)file.handle, scratch, &fd);

    if (error == ENOENT || error == EACCES || error == EPERM) {
        error = hand_over_file(r, (int)file.handle, scratch, &fd);
    }
    if (error != 0) {
        return error;
    }
    error = hfn_linux_map_at(r, address, byte_count, MAP_SHARED, fd);
    close_there(r, fd);
    return error;
}

#else

hfn_os_error hfn_os_remote_map_file(hfn_remote *r, hfn_os_file file, uint64_t scratch,
                                    uint64_t address, uint64_t byte_count)
{
    (void)r, (void)file, (void)scratch, (void)address, (void)byte_count;
    return ENOSYS;
}

#endif
