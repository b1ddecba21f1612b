/* SPDX-License-Identifier: MIT */
/* HTTP by WinHTTP, which is loaded from the system's folder when it is first needed. */
#include "push/http.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>
#include <winhttp.h>

enum { MAX_ANSWER_BYTES = 65536, DEFAULT_TIMEOUT_MS = 20000, CONNECT_TIMEOUT_MS = 5000 };

/* clang-format off */
#define WINHTTP_CALLS(CALL) \
    CALL(WinHttpOpen) \
    CALL(WinHttpSetTimeouts) \
    CALL(WinHttpCrackUrl) \
    CALL(WinHttpConnect) \
    CALL(WinHttpOpenRequest) \
    CALL(WinHttpSetOption) \
    CALL(WinHttpSendRequest) \
    CALL(WinHttpReceiveResponse) \
    CALL(WinHttpQueryHeaders) \
    CALL(WinHttpReadData) \
    CALL(WinHttpCloseHandle)

#define WINHTTP_FIELD(name) __typeof__(name) *name;
typedef struct winhttp_calls {
    HMODULE library;
    WINHTTP_CALLS(WINHTTP_FIELD)
} winhttp_calls;
#undef WINHTTP_FIELD
/* clang-format on */

static winhttp_calls calls;

/* The handles of one request, and its address in pieces. */
typedef struct exchange {
    HINTERNET session, connection, request;
    URL_COMPONENTS parts;
    wchar_t *url, *host;
    wchar_t token[512];
} exchange;

static bool load_winhttp(void)
{
    winhttp_calls found = { .library = LoadLibraryExW(L"winhttp.dll", NULL,
                                                      LOAD_LIBRARY_SEARCH_SYSTEM32) };
    bool ok = found.library != NULL;

#define TAKE(name)                                                                                 \
    if (ok) {                                                                                      \
        FARPROC call = GetProcAddress(found.library, #name);                                       \
        memcpy(&found.name, &call, sizeof call);                                                   \
        ok = call != NULL;                                                                         \
    }
    WINHTTP_CALLS(TAKE)
#undef TAKE
    if (ok) {
        calls = found;
    }
    return ok;
}

static wchar_t *make_wide(const char *text)
{
    int units = MultiByteToWideChar(CP_UTF8, 0, text, -1, NULL, 0);
    wchar_t *wide = units > 0 ? calloc((size_t)units, sizeof *wide) : NULL;

    if (wide) {
        MultiByteToWideChar(CP_UTF8, 0, text, -1, wide, units);
    }
    return wide;
}

/* The text of the last error, from the messages of WinHTTP and of the system. */
static void describe_error(char *out, size_t out_bytes)
{
    wchar_t wide[256] = L"";
    DWORD code = GetLastError();

    FormatMessageW(FORMAT_MESSAGE_FROM_HMODULE | FORMAT_MESSAGE_FROM_SYSTEM |
                       FORMAT_MESSAGE_IGNORE_INSERTS,
                   calls.library, code, 0, wide, 256, NULL);
    if (WideCharToMultiByte(CP_UTF8, 0, wide, -1, out, (int)out_bytes, NULL, NULL) <= 1) {
        snprintf(out, out_bytes, "the system reports error %lu", code);
    }
    out[out_bytes - 1] = 0;
    out[strcspn(out, "\r\n")] = 0;
}

/* False after a failure that the last error describes. */
static bool open_exchange(exchange *x, const hotfn_push_options *options)
{
    int timeout = options->timeout_ms ? (int)options->timeout_ms : DEFAULT_TIMEOUT_MS;

    x->parts = (URL_COMPONENTS){ .dwStructSize = sizeof x->parts,
                                 .dwHostNameLength = (DWORD)-1,
                                 .dwUrlPathLength = (DWORD)-1,
                                 .dwExtraInfoLength = (DWORD)-1 };
    /* The proxy that the user has chosen; Windows before 8.1 knows only that of the system. */
    x->session = calls.WinHttpOpen(L"hotfn", WINHTTP_ACCESS_TYPE_AUTOMATIC_PROXY, NULL, NULL, 0);
    if (!x->session) {
        x->session = calls.WinHttpOpen(L"hotfn", WINHTTP_ACCESS_TYPE_DEFAULT_PROXY, NULL, NULL, 0);
    }
    if (!x->session ||
        !calls.WinHttpSetTimeouts(x->session, CONNECT_TIMEOUT_MS, CONNECT_TIMEOUT_MS, timeout,
                                  timeout) ||
        !calls.WinHttpCrackUrl(x->url, 0, 0, &x->parts)) {
        return false;
    }
    x->host = calloc(x->parts.dwHostNameLength + (size_t)1, sizeof *x->host);
    if (!x->host) {
        SetLastError(ERROR_NOT_ENOUGH_MEMORY);
        return false;
    }
    memcpy(x->host, x->parts.lpszHostName, x->parts.dwHostNameLength * sizeof *x->host);
    x->connection = calls.WinHttpConnect(x->session, x->host, x->parts.nPort, 0);
    return x->connection != NULL;
}

/* lpszUrlPath also has the query, which follows the path in the address. */
static bool send_body(exchange *x, const hotfn_push_options *options, const void *body,
                      size_t body_bytes)
{
    DWORD secure = x->parts.nScheme == INTERNET_SCHEME_HTTPS ? WINHTTP_FLAG_SECURE : 0;
    /* A redirection must not lead elsewhere. */
    DWORD disabled = WINHTTP_DISABLE_REDIRECTS | WINHTTP_DISABLE_COOKIES;

    x->request = calls.WinHttpOpenRequest(x->connection, L"PUT", x->parts.lpszUrlPath, NULL, NULL,
                                          NULL, secure | WINHTTP_FLAG_ESCAPE_DISABLE);
    if (!x->request || !calls.WinHttpSetOption(x->request, WINHTTP_OPTION_DISABLE_FEATURE,
                                               &disabled, sizeof disabled)) {
        return false;
    }
    const wchar_t *headers = L"Content-Type: application/octet-stream\r\n";
    if (options->token) {
        swprintf(x->token, sizeof x->token / sizeof x->token[0],
                 L"Content-Type: application/octet-stream\r\nAuthorization: Bearer %hs\r\n",
                 options->token);
        headers = x->token;
    }
    return calls.WinHttpSendRequest(x->request, headers, (DWORD)-1, (void *)(uintptr_t)body,
                                    (DWORD)body_bytes, (DWORD)body_bytes, 0) &&
           calls.WinHttpReceiveResponse(x->request, NULL);
}

static long query_number(const exchange *x, DWORD which)
{
    DWORD value = 0, bytes = sizeof value;
    bool ok = calls.WinHttpQueryHeaders(x->request, which | WINHTTP_QUERY_FLAG_NUMBER, NULL, &value,
                                        &bytes, NULL);
    return ok ? (long)value : 0;
}

static bool receive_answer(const exchange *x, http_answer *out)
{
    char bytes[4096];
    DWORD n = 0;
    bool ok;

    while ((ok = calls.WinHttpReadData(x->request, bytes, sizeof bytes, &n)) && n > 0) {
        /* A longer answer is not the collector's: its end is dropped. */
        if (out->body.used + n <= MAX_ANSWER_BYTES) {
            buffer_append(&out->body, bytes, n);
        }
    }
    out->status = ok ? query_number(x, WINHTTP_QUERY_STATUS_CODE) : 0;
    out->retry_after = ok ? query_number(x, WINHTTP_QUERY_RETRY_AFTER) : 0;
    return ok;
}

static void close_exchange(exchange *x)
{
    HINTERNET handles[] = { x->request, x->connection, x->session };

    for (size_t i = 0; i < sizeof handles / sizeof handles[0]; i++) {
        if (handles[i]) {
            calls.WinHttpCloseHandle(handles[i]);
        }
    }
    SecureZeroMemory(x->token, sizeof x->token);
    free(x->url);
    free(x->host);
}

hotfn_status http_put(http_answer *out, const char *url, const hotfn_push_options *options,
                      const void *body, size_t body_bytes, hotfn_error *err)
{
    exchange x = { 0 };

    *out = (http_answer){ 0 };
    if (!calls.library && !load_winhttp()) {
        return push_fail(err, HOTFN_E_UNSUPPORTED, "this system has no WinHTTP (winhttp.dll)");
    }
    if (options->certificates) {
        return push_fail(err, HOTFN_E_UNSUPPORTED,
                         "Windows trusts the authorities in its store: add this one (certutil "
                         "-user -addstore Root FILE) instead of --certificates");
    }
    x.url = make_wide(url);
    if (!x.url || body_bytes > UINT32_MAX) {
        free(x.url);
        return push_fail(err, HOTFN_E_NO_MEMORY, "not enough memory");
    }
    if (!open_exchange(&x, options) || !send_body(&x, options, body, body_bytes) ||
        !receive_answer(&x, out)) {
        describe_error(out->text, sizeof out->text);
    }
    buffer_append(&out->body, "", 1);
    close_exchange(&x);
    return out->body.failed ? push_fail(err, HOTFN_E_NO_MEMORY, "not enough memory") : HOTFN_OK;
}
