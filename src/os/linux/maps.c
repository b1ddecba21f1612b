/* SPDX-License-Identifier: MIT */
/* The mappings of this process, for finding gaps and protections.  The text is read by raw system
 * calls, since libc may already be hooked, and parsed in place, since it may have tens of thousands
 * of lines. Lines that describe no mapping are skipped. */
#include "os/linux/maps.h"

#include "os/linux/raw.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

enum { BUFFER_BYTES = 8192 };

static const char *parse_hex(const char *at, const char *end, uint64_t *out)
{
    uint64_t value = 0;

    for (; at < end; at++) {
        unsigned digit = (unsigned char)*at;
        if (digit - '0' < 10) {
            digit -= '0';
        } else if (digit - 'a' < 6) {
            digit -= 'a' - 10;
        } else {
            break;
        }
        value = value << 4 | digit;
    }
    *out = value;
    return at;
}

static bool ends_with(const char *line, const char *end, const char *word, size_t length)
{
    return (size_t)(end - line) > length && memcmp(end - length, word, length) == 0;
}

/* `begin-end rwxp offset device inode   path` */
static bool parse_line(const char *line, const char *end, hfn_map *out)
{
    const char *at = parse_hex(line, end, &out->begin);

    if (at == end || *at != '-') {
        return false;
    }
    at = parse_hex(at + 1, end, &out->end);
    if (end - at < 5 || *at != ' ') {
        return false;
    }
    out->protection = (at[1] == 'r' ? PROT_READ : 0) | (at[2] == 'w' ? PROT_WRITE : 0) |
                      (at[3] == 'x' ? PROT_EXEC : 0);
    out->is_stack = ends_with(line, end, "[stack]", 7);
    out->is_heap = ends_with(line, end, "[heap]", 6);
    out->is_vdso = ends_with(line, end, "[vdso]", 6);
    out->is_file = memchr(line, '/', (size_t)(end - line)) != NULL;
    return true;
}

/* Visit each complete line of text[0..used); returns the number of bytes consumed. */
static size_t visit_lines(const char *text, size_t used, hfn_map_fn visit, void *user, bool *go_on)
{
    size_t done = 0;

    while (*go_on) {
        const char *end = memchr(text + done, '\n', used - done);
        hfn_map map;
        if (!end) {
            break;
        }
        if (parse_line(text + done, end, &map)) {
            *go_on = visit(user, &map);
        }
        done = (size_t)(end - text) + 1;
    }
    return done;
}

static long open_path(const char *path)
{
    return hfn_raw_syscall3(SYS_openat, (uint64_t)AT_FDCWD, hfn_raw_pointer(path),
                            O_RDONLY | O_CLOEXEC);
}

static long open_maps(void)
{
    return open_path("/proc/self/maps");
}

static bool read_text(long fd, hfn_map_fn visit, void *user)
{
    char text[BUFFER_BYTES];
    size_t used = 0;
    bool go_on = true;
    long got;

    do {
        size_t done;
        got = hfn_raw_syscall3(SYS_read, (uint64_t)fd, hfn_raw_pointer(text + used),
                               sizeof text - used);
        used += got > 0 ? (size_t)got : 0;
        done = visit_lines(text, used, visit, user, &go_on);
        if (done == 0 && used == sizeof text) {
            done = used; /* a line longer than the buffer: no path is that long */
        }
        memmove(text, text + done, used - done);
        used -= done;
    } while (go_on && got > 0);
    return got >= 0;
}

/* Linux 6.11, include/uapi/linux/fs.h: struct procmap_query. */
typedef struct map_query {
    uint64_t size, flags, address; /* in; address: this mapping or the next one, by the flag */
    uint64_t begin, end, protection, page_bytes, offset, inode;
    uint32_t device_major, device_minor, name_bytes, id_bytes;
    uint64_t name, id;
} map_query;

#define MAP_QUERY_REQUEST _IOWR('f', 17, map_query)
enum { MAP_QUERY_OR_NEXT = 0x10, MAP_IS_READABLE = 1, MAP_IS_WRITABLE = 2, MAP_IS_EXECUTABLE = 4 };

/* False if the kernel does not support the query; no mapping was visited then. */
static bool query_maps(long fd, uint64_t from, hfn_map_fn visit, void *user)
{
    map_query query = { .size = sizeof query, .flags = MAP_QUERY_OR_NEXT, .address = from };
    long got;

    for (;;) {
        hfn_map map = { 0 };
        got = hfn_raw_syscall3(SYS_ioctl, (uint64_t)fd, MAP_QUERY_REQUEST, hfn_raw_pointer(&query));
        if (got < 0) {
            return got == -ENOENT;
        }
        map.begin = query.begin;
        map.end = query.end;
        map.protection = (query.protection & MAP_IS_READABLE ? PROT_READ : 0) |
                         (query.protection & MAP_IS_WRITABLE ? PROT_WRITE : 0) |
                         (query.protection & MAP_IS_EXECUTABLE ? PROT_EXEC : 0);
        if (!visit(user, &map)) {
            return true;
        }
        query.address = query.end;
    }
}

static bool read_and_close(long fd, hfn_map_fn visit, void *user)
{
    bool read = fd >= 0 && read_text(fd, visit, user);

    if (fd >= 0) {
        hfn_raw_syscall3(SYS_close, (uint64_t)fd, 0, 0);
    }
    return read;
}

bool hfn_linux_each_map(hfn_map_fn visit, void *user)
{
    return read_and_close(open_maps(), visit, user);
}

bool hfn_linux_each_map_of(uint32_t pid, hfn_map_fn visit, void *user)
{
    char path[32];

    snprintf(path, sizeof path, "/proc/%u/maps", pid);
    return read_and_close(open_path(path), visit, user);
}

bool hfn_linux_each_map_from(uint64_t from, hfn_map_fn visit, void *user)
{
    long fd = open_maps();
    bool read = fd >= 0 && (query_maps(fd, from, visit, user) || read_text(fd, visit, user));

    if (fd >= 0) {
        hfn_raw_syscall3(SYS_close, (uint64_t)fd, 0, 0);
    }
    return read;
}
