/* SPDX-License-Identifier: MIT */
/* Receive the body of a request. */
#include "body.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FREE_RATIO_BYTES (UINT64_C(1) << 20) /* up to this size a body may have any ratio */

static bool refuse_for_file(refusal *why)
{
    return refuse_request(
        why, 507,
        "the collector cannot write to its disk (%s): free space on it, or correct "
        "its permissions, then send again",
        strerror(errno));
}

static int open_unnamed_file(const char *folder)
{
    char path[4096];
    int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

    if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL) &&
        snprintf(path, sizeof path, "%s/body-XXXXXX", folder) < (int)sizeof path) {
        fd = mkostemp(path, O_CLOEXEC);
        if (fd >= 0) {
            unlink(path);
        }
    }
    return fd;
}

bool body_begin(request_body *b, const char *folder, bool gzip, const body_limits *limits,
                refusal *why)
{
    *b = (request_body){ .fd = -1, .gzip = gzip, .limits = limits };
    sha256_begin(&b->hash);
    /* 16 + 15: a gzip header, and the largest window (zlib.h). */
    if (gzip && inflateInit2(&b->stream, 16 + 15) != Z_OK) {
        b->gzip = false;
        return refuse_request(why, 503, "the collector has not enough memory: send again later");
    }
    b->fd = open_unnamed_file(folder);
    return b->fd >= 0 || refuse_for_file(why);
}

static bool store_bytes(request_body *b, const uint8_t *bytes, size_t byte_count, refusal *why)
{
    b->inflated += byte_count;
    if (b->inflated > b->limits->max_inflated) {
        return refuse_request(
            why, 413,
            "the body has more than %llu bytes (inflated): count fewer functions, or "
            "start the collector with a larger --max-inflated",
            (unsigned long long)b->limits->max_inflated);
    }
    if (b->inflated > FREE_RATIO_BYTES && b->inflated / b->limits->max_ratio > b->received) {
        return refuse_request(
            why, 413, "the body inflates to more than %u times its size: this is not a record",
            b->limits->max_ratio);
    }
    sha256_add(&b->hash, bytes, byte_count);
    while (byte_count > 0) {
        ssize_t n = write(b->fd, bytes, byte_count);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return refuse_for_file(why);
        }
        bytes += n;
        byte_count -= (size_t)n;
    }
    return true;
}

static bool inflate_bytes(request_body *b, const uint8_t *bytes, size_t byte_count, refusal *why)
{
    uint8_t out[32768];

    b->stream.next_in = (Bytef *)bytes;
    b->stream.avail_in = (uInt)byte_count;
    do {
        b->stream.next_out = out;
        b->stream.avail_out = sizeof out;
        int result = inflate(&b->stream, Z_NO_FLUSH);
        bool ok = result == Z_OK || result == Z_STREAM_END || result == Z_BUF_ERROR;
        if (!ok || (b->ended && b->stream.avail_in > 0)) {
            return refuse_request(why, 400, "the body is not valid gzip: send the record again");
        }
        b->ended |= result == Z_STREAM_END;
        if (!store_bytes(b, out, sizeof out - b->stream.avail_out, why)) {
            return false;
        }
    } while (b->stream.avail_out == 0 && !b->ended);
    if (b->stream.avail_in > 0) {
        return refuse_request(why, 400,
                              "bytes follow the end of the gzip body: send the record again");
    }
    return true;
}

bool body_add(request_body *b, const void *bytes, size_t byte_count, refusal *why)
{
    b->received += byte_count;
    if (b->received > b->limits->max_body) {
        return refuse_request(
            why, 413,
            "the body has more than %llu bytes: count fewer functions, or start the "
            "collector with a larger limit (--max-body, --max-build)",
            (unsigned long long)b->limits->max_body);
    }
    return b->gzip ? inflate_bytes(b, bytes, byte_count, why)
                   : store_bytes(b, bytes, byte_count, why);
}

bool body_finish(request_body *b, uint8_t checksum[SHA256_BYTES], refusal *why)
{
    if (b->gzip && !b->ended) {
        return refuse_request(why, 400, "the gzip body is cut off: send the record again");
    }
    sha256_finish(&b->hash, checksum);
    return true;
}

void body_free(request_body *b)
{
    if (b->gzip) {
        inflateEnd(&b->stream);
        b->gzip = false;
    }
    if (b->fd >= 0) {
        close(b->fd);
        b->fd = -1;
    }
}
