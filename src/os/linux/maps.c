/* SPDX-License-Identifier: MIT */
/* What is mapped where, for finding gaps and protections.  The text is read by system calls alone
 * and parsed in place: a process may have tens of thousands of lines, and hooks may already stand in
 * its libc.  Lines that are no mapping are passed over. */
#include "os/linux/maps.h"

#include "os/linux/raw.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

enum { BUFFER_BYTES = 8192 };

static const char *parse_hex(const char *at, const char *end, uint64_t *out)
{
    uint64_t value = 0;

    for (; at < end; at++) {
        unsigned digit = (unsigned char)*at;
        if (digit - '0' < 10)
            digit -= '0';
        else if (digit - 'a' < 6)
            digit -= 'a' - 10;
        else
            break;
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

    if (at == end || *at != '-')
        return false;
    at = parse_hex(at + 1, end, &out->end);
    if (end - at < 5 || *at != ' ' || out->end <= out->begin)
        return false;
    out->protection = (at[1] == 'r' ? PROT_READ : 0) | (at[2] == 'w' ? PROT_WRITE : 0) |
                      (at[3] == 'x' ? PROT_EXEC : 0);
    out->is_stack = ends_with(line, end, "[stack]", 7);
    out->is_heap = ends_with(line, end, "[heap]", 6);
    return true;
}

/* Visit each whole line of text[0..used); the answer is how many bytes were consumed. */
static size_t visit_lines(const char *text, size_t used, hfn_map_fn visit, void *user, bool *go_on)
{
    size_t done = 0;

    while (*go_on) {
        const char *end = memchr(text + done, '\n', used - done);
        hfn_map map;
        if (!end)
            break;
        if (parse_line(text + done, end, &map))
            *go_on = visit(user, &map);
        done = (size_t)(end - text) + 1;
    }
    return done;
}

bool hfn_linux_each_map(hfn_map_fn visit, void *user)
{
    char text[BUFFER_BYTES];
    size_t used = 0;
    bool go_on = true;
    long got, fd = hfn_raw3(SYS_openat, (uint64_t)AT_FDCWD, hfn_raw_pointer("/proc/self/maps"),
                            O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return false;
    do {
        size_t done;
        got = hfn_raw3(SYS_read, (uint64_t)fd, hfn_raw_pointer(text + used), sizeof text - used);
        used += got > 0 ? (size_t)got : 0;
        done = visit_lines(text, used, visit, user, &go_on);
        if (done == 0 && used == sizeof text)
            done = used; /* a line longer than the buffer: no path is that long */
        memmove(text, text + done, used - done);
        used -= done;
    } while (go_on && got > 0);
    hfn_raw3(SYS_close, (uint64_t)fd, 0, 0);
    return got >= 0;
}
