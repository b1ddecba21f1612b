/* SPDX-License-Identifier: MIT */
/* One kind of HTTP request, by libcurl: POST, to a server of ClickHouse. */
#ifndef HOTFN_COLLECTOR_HTTP_POST_H
#define HOTFN_COLLECTOR_HTTP_POST_H

#include "buffer.h"

typedef struct http_handle http_handle;

/* NULL without memory, or in a build without libcurl. */
http_handle *http_open(void);
void http_close(http_handle *h);
/* Append the answer.  Returns NULL, or what is wrong if no whole answer came. */
const char *http_post(http_handle *h, const char *url, const char *body, size_t body_bytes,
                      byte_buffer *answer, long *status);

#endif
