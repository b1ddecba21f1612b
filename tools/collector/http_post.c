/* SPDX-License-Identifier: MIT */
/* POST by libcurl. */
#include "http_post.h"

#include <curl/curl.h>
#include <stdlib.h>

enum { CONNECT_MS = 2000, ANSWER_SECONDS = 300 };
#define MAX_ANSWER_BYTES (UINT64_C(1) << 30)

struct http_handle {
    CURL *curl;
};

http_handle *http_open(void)
{
    http_handle *h = calloc(1, sizeof *h);

    if (h) {
        h->curl = curl_easy_init();
    }
    if (!h || !h->curl) {
        free(h);
        return NULL;
    }
    return h;
}

void http_close(http_handle *h)
{
    if (h) {
        curl_easy_cleanup(h->curl);
        free(h);
    }
}

static size_t store_answer(char *bytes, size_t size, size_t count, void *user)
{
    byte_buffer *out = user;

    if (out->used + size * count > MAX_ANSWER_BYTES) {
        return 0;
    }
    buffer_append(out, bytes, size * count);
    return out->failed ? 0 : size * count;
}

const char *http_post(http_handle *h, const char *url, const char *body, size_t body_bytes,
                      byte_buffer *answer, long *status)
{
    /* Without this, curl waits a second for "100 Continue" before it sends a large body. */
    struct curl_slist *headers = curl_slist_append(NULL, "Expect:");

    curl_easy_reset(h->curl); /* keeps the connections */
    curl_easy_setopt(h->curl, CURLOPT_URL, url);
    curl_easy_setopt(h->curl, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(h->curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(h->curl, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(h->curl, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS);
    curl_easy_setopt(h->curl, CURLOPT_TIMEOUT, (long)ANSWER_SECONDS);
    curl_easy_setopt(h->curl, CURLOPT_POSTFIELDS, body);
    curl_easy_setopt(h->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body_bytes);
    curl_easy_setopt(h->curl, CURLOPT_WRITEFUNCTION, store_answer);
    curl_easy_setopt(h->curl, CURLOPT_WRITEDATA, answer);
    CURLcode code = curl_easy_perform(h->curl);
    curl_easy_getinfo(h->curl, CURLINFO_RESPONSE_CODE, status);
    curl_slist_free_all(headers);
    return code == CURLE_OK ? NULL : curl_easy_strerror(code);
}
