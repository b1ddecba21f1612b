/* SPDX-License-Identifier: MIT */
/* The threads of this process as the kernel lists them, including those that libc did not
 * create. */
#include "os/linux/tasks.h"

#include "os/linux/raw.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>

enum { BUFFER_BYTES = 4096, PATH_BYTES = 40, STAT_BYTES = 192, PF_IO_WORKER = 0x10 };

/* struct linux_dirent64: u64 inode, i64 next, u16 record bytes, u8 type, name. */
enum { RECORD_BYTES_AT = 16, NAME_AT = 19 };

static uint32_t parse_number(const char *text)
{
    uint32_t value = 0;

    for (; *text >= '0' && *text <= '9'; text++) {
        value = value * 10 + (uint32_t)(*text - '0');
    }
    return value;
}

static bool visit_entries(const char *entries, long used, hfn_task_fn visit, void *user)
{
    for (long at = 0; at + NAME_AT < used;) {
        uint32_t bytes = (uint8_t)entries[at + RECORD_BYTES_AT] |
                         (uint32_t)(uint8_t)entries[at + RECORD_BYTES_AT + 1] << 8;
        uint32_t tid = parse_number(entries + at + NAME_AT); /* 0 for "." and ".." */
        if (tid != 0 && !visit(user, tid)) {
            return false;
        }
        at += bytes;
    }
    return true;
}

bool hfn_linux_each_task(hfn_task_fn visit, void *user)
{
    char entries[BUFFER_BYTES];
    long got,
        fd = hfn_raw_syscall3(SYS_openat, (uint64_t)AT_FDCWD, hfn_raw_pointer("/proc/self/task"),
                              O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0) {
        return false;
    }
    do {
        got = hfn_raw_syscall3(SYS_getdents64, (uint64_t)fd, hfn_raw_pointer(entries),
                               sizeof entries);
    } while (got > 0 && visit_entries(entries, got, visit, user));
    hfn_raw_syscall3(SYS_close, (uint64_t)fd, 0, 0);
    return got >= 0;
}

static void write_path(char *out, uint32_t tid)
{
    static const char head[] = "/proc/self/task/", tail[] = "/stat";
    char digits[10];
    size_t at = 0, count = 0;

    for (; tid > 0; tid /= 10) {
        digits[count++] = (char)('0' + tid % 10);
    }
    for (size_t i = 0; i + 1 < sizeof head; i++) {
        out[at++] = head[i];
    }
    while (count > 0) {
        out[at++] = digits[--count];
    }
    for (size_t i = 0; i < sizeof tail; i++) {
        out[at++] = tail[i];
    }
}

/* The seventh field behind the name: state, ppid, pgrp, session, tty, tpgid, flags. */
static uint32_t parse_flags(const char *state)
{
    const char *at = state;

    for (int fields = 0; fields < 6; fields++) {
        while (*at && *at != ' ') {
            at++;
        }
        at += *at == ' ';
    }
    return parse_number(at);
}

/* Background workers of io_uring are listed as threads, but never leave the kernel and receive no
 * signal. They are recognised by flag and name together: the flag (linux/sched.h, PF_IO_WORKER,
 * since 5.12) had another meaning before 5.7, and any thread can have the name. */
static bool is_kernel_worker(const char *name, const char *state)
{
    return name[0] == 'i' && name[1] == 'o' && name[2] == 'u' && name[3] == '-' &&
           (parse_flags(state) & PF_IO_WORKER) != 0;
}

/* proc(5): `tid (name) state ...`; the name may contain brackets, so it ends at the last one. */
bool hfn_linux_task_runs_no_code(uint32_t tid)
{
    char path[PATH_BYTES], stat[STAT_BYTES];
    const char *name = stat;
    long got, fd;

    write_path(path, tid);
    fd = hfn_raw_syscall3(SYS_openat, (uint64_t)AT_FDCWD, hfn_raw_pointer(path),
                          O_RDONLY | O_CLOEXEC);
    if (fd < 0) { /* other errors: the thread exists, but no file descriptor is free */
        return fd == -ENOENT || fd == -ESRCH;
    }
    got = hfn_raw_syscall3(SYS_read, (uint64_t)fd, hfn_raw_pointer(stat), sizeof stat - 1);
    hfn_raw_syscall3(SYS_close, (uint64_t)fd, 0, 0);
    stat[got > 0 ? got : 0] = '\0';
    while (*name && *name++ != '(') {
    }
    for (long i = got - 3; i >= 0; i--) {
        if (stat[i] == ')') {
            return stat[i + 2] == 'Z' || stat[i + 2] == 'X' || stat[i + 2] == 'x' ||
                   is_kernel_worker(name, stat + i + 2);
        }
    }
    return got == -ESRCH; /* the thread ended between the two calls */
}
