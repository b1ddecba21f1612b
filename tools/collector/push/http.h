/* SPDX-License-Identifier: MIT */
/* One HTTP request: http.c by libcurl, http_windows.c by WinHTTP.  The library is loaded when it is
 * first needed: other commands of hotfn would otherwise load libcurl's 20 libraries too. */
#ifndef HOTFN_PUSH_HTTP_H
#define HOTFN_PUSH_HTTP_H

#include "buffer.h"

#include <hotfn/push.h>

typedef struct http_answer {
    long status;      /* 0: no answer came; text says why */
    long retry_after; /* seconds, 0: not given            */
    byte_buffer body;
    char text[256];
} http_answer;

/* HOTFN_OK if the request was made, whatever the answer; HOTFN_E_UNSUPPORTED without that
 * library. */
hotfn_status http_put(http_answer *out, const char *url, const hotfn_push_options *options,
                      const void *body, size_t body_bytes, hotfn_error *err);

hotfn_status push_fail(hotfn_error *err, hotfn_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
