/* SPDX-License-Identifier: MIT */
#include "events/address.h"

#include "base/status.h"

#include <stdio.h>
#include <string.h>

#define MAX_PORT 65535u

static bool parse_port(const char *text, uint16_t *out)
{
    uint32_t port = 0;

    for (const char *c = text; *c; c++) {
        if (*c < '0' || *c > '9' || port > MAX_PORT) {
            return false;
        }
        port = port * 10 + (uint32_t)(*c - '0');
    }
    *out = (uint16_t)port;
    return text[0] && port <= MAX_PORT;
}

/* HOST:PORT, [HOST]:PORT or PORT. */
static bool parse_udp(hfn_os_address *out, const char *text)
{
    const char *colon = strrchr(text, ':'), *host = text;
    size_t length = colon ? (size_t)(colon - text) : 0;

    if (colon && length >= 2 && text[0] == '[' && text[length - 1] == ']') {
        host++;
        length -= 2;
    } else if (memchr(text, ':', length)) {
        return false; /* an IPv6 address without brackets */
    }
    if ((colon && length == 0) || length >= sizeof out->host) {
        return false;
    }
    memcpy(out->host, host, length);
    return parse_port(colon ? colon + 1 : text, &out->port);
}

hotfn_status hfn_address_parse(hfn_os_address *out, const char *text, hotfn_error *err)
{
    hfn_os_address a = { 0 };
    bool ok = false;

    if (strncmp(text, "udp:", 4) == 0) {
        ok = parse_udp(&a, text + 4);
    } else if (strncmp(text, "unix:", 5) == 0) {
        ok = text[5] && strlen(text + 5) < sizeof a.path;
        memcpy(a.path, text + 5, ok ? strlen(text + 5) : 0);
    }
    if (!ok) {
        return hfn_report_error(err, HOTFN_E_OPTION, NULL, HOTFN_NO_OFFSET,
                                "'%s' is not an address for events: udp:HOST:PORT, udp:PORT, "
                                "unix:PATH (of at most %d bytes)",
                                text, HFN_OS_SOCKET_PATH_BYTES - 1);
    }
    *out = a;
    return HOTFN_OK;
}

void hfn_address_format(char *out, size_t out_bytes, const hfn_os_address *a)
{
    if (a->path[0]) {
        snprintf(out, out_bytes, "unix:%s", a->path);
    } else if (!a->host[0]) {
        snprintf(out, out_bytes, "udp:%u", a->port);
    } else {
        snprintf(out, out_bytes, strchr(a->host, ':') ? "udp:[%s]:%u" : "udp:%s:%u", a->host,
                 a->port);
    }
}
