/* SPDX-License-Identifier: MIT */
/* HTTP by libcurl. */
#include "push/http.h"

#include <curl/curl.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MAX_ANSWER_BYTES = 65536, DEFAULT_TIMEOUT_MS = 20000, CONNECT_TIMEOUT_MS = 5000 };

/* clang-format off */
#define CURL_CALLS(CALL) \
    CALL(curl_easy_init) \
    CALL(curl_easy_setopt) \
    CALL(curl_easy_perform) \
    CALL(curl_easy_getinfo) \
    CALL(curl_easy_cleanup) \
    CALL(curl_easy_strerror) \
    CALL(curl_global_init) \
    CALL(curl_slist_append) \
    CALL(curl_slist_free_all)

#define CURL_FIELD(name) __typeof__(name) *name;
typedef struct curl_calls {
    CURL_CALLS(CURL_FIELD)
} curl_calls;
#undef CURL_FIELD
/* clang-format on */

/* The headers define macros of these names that check the types of arguments; a pointer is
 * called. */
#undef curl_easy_setopt
#undef curl_easy_getinfo

static curl_calls calls;
static bool have_curl;

static bool load_symbol(void *library, const char *name, void *pointer)
{
    void *found = dlsym(library, name);

    memcpy(pointer, &found, sizeof found);
    return found != NULL;
}

static void load_curl(void)
{
    static const char *const names[] = { "libcurl.so.4", "libcurl-gnutls.so.4",
                                         "libcurl-nss.so.4" };
    void *library = NULL;

    for (size_t i = 0; !library && i < sizeof names / sizeof names[0]; i++) {
        library = dlopen(names[i], RTLD_NOW);
    }
    have_curl = library != NULL;
#define TAKE(name) have_curl = have_curl && load_symbol(library, #name, &calls.name);
    CURL_CALLS(TAKE)
#undef TAKE
    have_curl = have_curl && calls.curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
}

static size_t store_body(char *bytes, size_t size, size_t count, void *user)
{
    http_answer *answer = user;

    /* An answer longer than any of the collector is cut off. */
    if (answer->body.used + size * count <= MAX_ANSWER_BYTES) {
        buffer_append(&answer->body, bytes, size * count);
    }
    return size * count;
}

static size_t store_header(char *bytes, size_t size, size_t count, void *user)
{
    http_answer *answer = user;
    static const char name[] = "retry-after:";
    size_t length = size * count;

    if (length > sizeof name && strncasecmp(bytes, name, sizeof name - 1) == 0) {
        char value[16] = "";
        size_t digits = length - (sizeof name - 1);
        memcpy(value, bytes + sizeof name - 1, digits < 15 ? digits : 15);
        answer->retry_after = strtol(value, NULL, 10);
    }
    return length;
}

static struct curl_slist *make_headers(const hotfn_push_options *options)
{
    char token[512];
    struct curl_slist *headers =
        calls.curl_slist_append(NULL, "Content-Type: application/octet-stream");

    /* Without this, curl waits a second for "100 Continue" before it sends a large body. */
    headers = headers ? calls.curl_slist_append(headers, "Expect:") : NULL;
    if (headers && options->token) {
        snprintf(token, sizeof token, "Authorization: Bearer %s", options->token);
        headers = calls.curl_slist_append(headers, token);
    }
    return headers;
}

static void set_options(CURL *curl, const char *url, const hotfn_push_options *options,
                        struct curl_slist *headers, http_answer *out)
{
    long timeout = options->timeout_ms ? (long)options->timeout_ms : DEFAULT_TIMEOUT_MS;

    calls.curl_easy_setopt(curl, CURLOPT_URL, url);
    calls.curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, "PUT");
    calls.curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    calls.curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    calls.curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, timeout);
    calls.curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_TIMEOUT_MS);
    /* The address begins with http: or https:, and a redirection must not lead elsewhere. */
    calls.curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
    calls.curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, store_body);
    calls.curl_easy_setopt(curl, CURLOPT_WRITEDATA, out);
    calls.curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, store_header);
    calls.curl_easy_setopt(curl, CURLOPT_HEADERDATA, out);
    if (options->certificates) {
        calls.curl_easy_setopt(curl, CURLOPT_CAINFO, options->certificates);
    }
}

hotfn_status http_put(http_answer *out, const char *url, const hotfn_push_options *options,
                      const void *body, size_t body_bytes, hotfn_error *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    *out = (http_answer){ 0 };
    pthread_once(&once, load_curl);
    if (!have_curl) {
        return push_fail(err, HOTFN_E_UNSUPPORTED,
                         "libcurl is not installed (Debian: libcurl4): install it");
    }
    CURL *curl = calls.curl_easy_init();
    struct curl_slist *headers = curl ? make_headers(options) : NULL;
    if (!headers) {
        calls.curl_easy_cleanup(curl);
        return push_fail(err, HOTFN_E_NO_MEMORY, "not enough memory");
    }
    set_options(curl, url, options, headers, out);
    calls.curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body);
    calls.curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body_bytes);
    CURLcode code = calls.curl_easy_perform(curl);
    if (code == CURLE_OK) {
        calls.curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &out->status);
    } else {
        snprintf(out->text, sizeof out->text, "%s", calls.curl_easy_strerror(code));
    }
    buffer_append(&out->body, "", 1);
    calls.curl_slist_free_all(headers);
    calls.curl_easy_cleanup(curl);
    return out->body.failed ? push_fail(err, HOTFN_E_NO_MEMORY, "not enough memory") : HOTFN_OK;
}
