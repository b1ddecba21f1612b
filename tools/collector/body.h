/* SPDX-License-Identifier: MIT */
/* The body of a request: inflated while it arrives, hashed, and kept in a file without a name,
 * so that many slow clients cost disk and not memory. */
#ifndef HOTFN_COLLECTOR_BODY_H
#define HOTFN_COLLECTOR_BODY_H

#include "sha256.h"
#include "store.h"

#include <zlib.h>

typedef struct body_limits {
    uint64_t max_body, max_inflated; /* bytes */
    uint32_t max_ratio;              /* inflated to received, beyond the first MiB */
} body_limits;

typedef struct request_body {
    int fd;
    bool gzip, ended; /* ended: the gzip stream is complete */
    z_stream stream;
    sha256 hash;
    uint64_t received, inflated;
    const body_limits *limits;
} request_body;

bool body_begin(request_body *b, const char *folder, bool gzip, const body_limits *limits,
                refusal *why);
bool body_add(request_body *b, const void *bytes, size_t byte_count, refusal *why);
/* Check that the body is complete, and compute its checksum. */
bool body_finish(request_body *b, uint8_t checksum[SHA256_BYTES], refusal *why);
void body_free(request_body *b);

#endif
