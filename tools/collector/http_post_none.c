/* SPDX-License-Identifier: MIT */
/* A build without libcurl: --clickhouse is refused. */
#include "http_post.h"

http_handle *http_open(void)
{
    return NULL;
}

void http_close(http_handle *h)
{
    (void)h;
}

const char *http_post(http_handle *h, const char *url, const char *body, size_t body_bytes,
                      byte_buffer *answer, long *status)
{
    (void)h, (void)url, (void)body, (void)body_bytes, (void)answer;
    *status = 0;
    return "this hotfn-collector was built without libcurl";
}
