/* SPDX-License-Identifier: MIT */
/* The listener: receives datagrams, drops malformed ones, and passes each of the others to its
 * stream. */
#include "base/status.h"
#include "events/address.h"
#include "events/format.h"
#include "events/stream.h"
#include "os/clock.h"

#include <inttypes.h>
#include <string.h>

#define MAX_STREAMS 64u              /* of a listener, at one time */
#define OLD_NS UINT64_C(10000000000) /* a stream that is silent for longer counts as ended */
#define MAX_AT_ONCE 256u             /* datagrams that one call of hotfn_listener_receive reads */
#define ADDRESS_BYTES (HFN_OS_HOST_BYTES + 16)

struct hotfn_listener {
    hotfn_env env;
    uint32_t flags;
    bool has_socket;
    hfn_os_socket socket;
    char address[ADDRESS_BYTES];
    hfn_stream *streams[MAX_STREAMS];
    uint32_t stream_count; /* elements of `streams` in use */
    hotfn_listener_stats stats;
    uint8_t bytes[HOTFN_EVENTS_MAX_BYTES + 1];
};

static hotfn_status open_socket(hotfn_listener *l, const char *address, hotfn_error *err)
{
    hfn_os_address at;
    hotfn_status status = hfn_address_parse(&at, address, err);

    if (status == HOTFN_OK) {
        status = hfn_os_open_receiver(&l->socket, &at, err);
    }
    l->has_socket = status == HOTFN_OK;
    if (l->has_socket) {
        hfn_address_format(l->address, sizeof l->address, &at);
    }
    return status;
}

hotfn_status hotfn_listener_open(hotfn_listener **out, const char *address, uint32_t flags,
                                 const hotfn_env *env, hotfn_error *err)
{
    hotfn_env filled = hfn_env_fill(env);

    if (!out) {
        return hfn_report_null(err, __func__);
    }
    if (flags & ~HOTFN_LISTENER_KEEP) {
        return hfn_report_error(err, HOTFN_E_OPTION, NULL, HOTFN_NO_OFFSET,
                                "unknown flag of a listener");
    }
    hotfn_listener *l = hfn_allocate_zeroed(&filled, sizeof *l);
    if (!l) {
        return hfn_report_no_memory(err, NULL);
    }
    l->env = filled;
    l->flags = flags;
    l->stats.size = sizeof l->stats;
    hotfn_status status = address ? open_socket(l, address, err) : HOTFN_OK;
    if (status != HOTFN_OK) {
        hfn_free_memory(&filled, l, sizeof *l);
        return status;
    }
    *out = l;
    return HOTFN_OK;
}

void hotfn_listener_close(hotfn_listener *l)
{
    if (!l) {
        return;
    }
    hotfn_env env = l->env;

    for (uint32_t i = 0; i < l->stream_count; i++) {
        hfn_stream_destroy(l->streams[i]);
    }
    if (l->has_socket) {
        hfn_os_close_socket(&l->socket);
    }
    hfn_free_memory(&env, l, sizeof *l);
}

const char *hotfn_listener_get_address(const hotfn_listener *l)
{
    return l ? l->address : "";
}

/* ---- Streams. */

/* Whether the stream has ended, or its sender, which sends something every second, has vanished. */
static bool is_over(const hfn_stream *s, uint64_t now)
{
    return s->has_ended || now - s->heard_ns > OLD_NS;
}

/* Find the array element for a new stream: an unused one, or else that of the stream that has been
 * silent longest, if that has ended.  NULL: there is none. */
static hfn_stream **find_place(hotfn_listener *l, uint64_t now)
{
    hfn_stream **oldest = NULL;

    if (l->stream_count < MAX_STREAMS) {
        return &l->streams[l->stream_count++];
    }
    for (uint32_t i = 0; i < MAX_STREAMS; i++) {
        hfn_stream *s = l->streams[i];
        if (is_over(s, now) && (!oldest || s->heard_ns < (*oldest)->heard_ns)) {
            oldest = &l->streams[i];
        }
    }
    if (oldest) {
        hfn_stream_destroy(*oldest);
        *oldest = NULL;
    }
    return oldest;
}

static hotfn_status find_stream(hotfn_listener *l, uint64_t id, uint64_t now, hfn_stream **out)
{
    for (uint32_t i = 0; i < l->stream_count; i++) {
        if (l->streams[i]->id == id) {
            *out = l->streams[i];
            return HOTFN_OK;
        }
    }
    hfn_stream *made = hfn_stream_create(id, l->stats.stream_count + 1,
                                         (l->flags & HOTFN_LISTENER_KEEP) != 0, &l->env);
    if (!made) {
        return HOTFN_E_NO_MEMORY;
    }
    hfn_stream **place = find_place(l, now);
    if (!place) {
        hfn_stream_destroy(made);
        return HOTFN_E_LIMIT;
    }
    l->stats.stream_count++;
    *place = *out = made;
    return HOTFN_OK;
}

hotfn_status hotfn_listener_add(hotfn_listener *l, const void *bytes, uint64_t byte_count,
                                hotfn_listener_fn report, void *user)
{
    hotfn_events_header header = HOTFN_EVENTS_HEADER_INIT;
    uint64_t now = hfn_os_monotonic_ns();
    hfn_stream *stream = NULL;

    if (!l || !bytes) {
        return HOTFN_E_OPTION;
    }
    hfn_stream_report to = { report, user, &l->stats };
    hotfn_status status = hotfn_events_open(&header, bytes, byte_count);
    if (status == HOTFN_OK) {
        status = find_stream(l, header.stream, now, &stream);
    }
    if (status == HOTFN_OK) {
        stream->heard_ns = now;
        status = hfn_stream_handle(stream, &header, bytes, byte_count, &to);
    }
    if (status == HOTFN_E_NO_MEMORY) {
        return status;
    }
    l->stats.datagram_count += status == HOTFN_OK;
    l->stats.malformed_count += status != HOTFN_OK;
    return HOTFN_OK;
}

hotfn_status hotfn_listener_receive(hotfn_listener *l, uint64_t timeout_ns,
                                    hotfn_listener_fn report, void *user, hotfn_error *err)
{
    if (!l) {
        return hfn_report_null(err, __func__);
    }
    if (!l->has_socket) {
        return hfn_report_error(err, HOTFN_E_STATE, NULL, HOTFN_NO_OFFSET,
                                "the listener was opened without an address");
    }
    for (uint32_t i = 0; i < MAX_AT_ONCE; i++) {
        size_t count;
        hotfn_status status = hfn_os_receive_datagram(&l->socket, i > 0 ? 0 : timeout_ns, l->bytes,
                                                      sizeof l->bytes, &count, err);
        if (status != HOTFN_OK || count == 0) {
            return status;
        }
        if (hotfn_listener_add(l, l->bytes, count, report, user) == HOTFN_E_NO_MEMORY) {
            return hfn_report_no_memory(err, NULL);
        }
    }
    return HOTFN_OK;
}

hotfn_status hotfn_listener_get_stats(const hotfn_listener *l, hotfn_listener_stats *out)
{
    if (!l) {
        return HOTFN_E_OPTION;
    }
    hotfn_listener_stats stats = l->stats;
    uint64_t now = hfn_os_monotonic_ns();

    stats.running_count = 0;
    for (uint32_t i = 0; i < l->stream_count; i++) {
        stats.running_count += !is_over(l->streams[i], now);
    }
    return hfn_copy_result(out, &stats, sizeof stats);
}

static void warn_of_dropped_calls(const hotfn_listener *l, const hfn_stream *s, const char *path)
{
    if (s->dropped_calls > 0) {
        hfn_log_message(&l->env, HOTFN_LOG_WARNING,
                        "%s: %" PRIu64 " calls are missing: their call trees have more than %u "
                        "places",
                        path, s->dropped_calls, HFN_STREAM_MAX_NODES);
    }
}

hotfn_status hotfn_listener_save(const hotfn_listener *l, uint32_t stream, const char *path,
                                 hotfn_error *err)
{
    if (!l || !path) {
        return hfn_report_null(err, __func__);
    }
    if (!(l->flags & HOTFN_LISTENER_KEEP)) {
        return hfn_report_error(err, HOTFN_E_STATE, path, HOTFN_NO_OFFSET,
                                "the listener keeps nothing for a record: open it with "
                                "HOTFN_LISTENER_KEEP");
    }
    for (uint32_t i = 0; i < l->stream_count; i++) {
        if (l->streams[i]->number == stream) {
            warn_of_dropped_calls(l, l->streams[i], path);
            return hfn_stream_save(l->streams[i], path, err);
        }
    }
    return hfn_report_error(err, HOTFN_E_NOT_FOUND, path, HOTFN_NO_OFFSET,
                            "there is no stream %u, or it was replaced by later ones", stream);
}
